//! What follows when something has ended: a project is frozen, people are told, work that was put aside is offered.
//!
//! Nobody waits for any of it, and nothing of it changes how a run ends.

use crate::context::Context;
use crate::{freeze, notify};
use backstop_core::{Event, EventKind, Fault, SafeText};
use backstop_hook::notify::ended;
use backstop_store::RunJournal;

/// A run has ended. Gives what is to be recorded about what follows; nothing is read where it went well.
pub(crate) fn run_ended(
    context: &Context,
    is_done: bool,
    events: impl FnOnce() -> Vec<Event>,
) -> Vec<EventKind> {
    if is_done {
        notify::see_to_the_rest(context);
        return Vec::new();
    }
    let events = events();
    let mut follows: Vec<EventKind> = Vec::new();
    if let Some((fault, event)) = last_fault(&events) {
        follows.extend(freeze::freeze(context, fault, Some(event.run)));
    }
    let next = if follows.is_empty() { None } else { Some(SafeText::new(freeze::UNFREEZE)) };
    let project = SafeText::new(context.project.to_string_lossy());
    match ended(&events, &project, next) {
        Some(message) => follows.extend(notify::tell(context, &message)),
        None => notify::see_to_the_rest(context),
    }
    follows
}

/// The same, for a run that is recorded here; what follows is recorded with it.
pub(crate) fn recorded_run_ended(context: &Context, run: &RunJournal, is_done: bool) {
    let follows = run_ended(context, is_done, || run.journal().load(run.id()).unwrap_or_default());
    if !follows.is_empty() {
        let _ = run.append(follows);
    }
}

fn last_fault(events: &[Event]) -> Option<(&Fault, &Event)> {
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ErrorClassified { fault, .. } => Some((&**fault, event)),
        _ => None,
    })
}
