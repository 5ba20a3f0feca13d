//! What follows when something has ended badly: the project is frozen where that is called for, and people are told.
//!
//! One place for every surface. Nobody waits for any of it, and nothing of it changes how a run ends.

use crate::context::{self, Context};
use crate::error::CliError;
use crate::{freeze, host, notify};
use backstop_core::{Event, EventKind, Fault, Reason, RunId, SafeText};
use backstop_notify::{About, Message, ended};
use backstop_report::{Alert, alert};
use backstop_store::RunJournal;

/// Something that went wrong, and how it ended.
pub(crate) struct Trouble<'t> {
    /// What was classified, in order.
    pub(crate) faults: Vec<&'t Fault>,
    /// What it ended with; nothing where it goes on.
    pub(crate) ended_with: Option<Reason>,
    /// The run, where it was recorded.
    pub(crate) run: Option<RunId>,
}

/// What follows. The message is made when it is known whether the project was frozen: then it is given why. Gives what is to be
/// recorded.
pub(crate) fn follow(
    context: &Context,
    trouble: &Trouble<'_>,
    message: impl FnOnce(Option<SafeText>) -> Option<Message>,
) -> Vec<EventKind> {
    let (mut follows, why) = match freeze::freeze(context, trouble) {
        Some((event, why)) => (vec![event], Some(why)),
        None => (Vec::new(), None),
    };
    match message(why) {
        Some(message) => follows.extend(notify::tell(context, &message)),
        None => notify::see_to_the_rest(context),
    }
    follows
}

/// A run has ended. Nothing is read where it went well.
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
    let faults = events.iter().filter_map(|event| match &event.kind {
        EventKind::ErrorClassified { fault, .. } => Some(&**fault),
        _ => None,
    });
    let ended_with = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunEnded { reason, .. } => *reason,
        EventKind::RunHalted { reason, .. } => Some(*reason),
        _ => None,
    });
    let run = events.first().map(|event| event.run);
    let trouble = Trouble { faults: faults.collect(), ended_with, run };
    let project = SafeText::new(context.project.to_string_lossy());
    follow(context, &trouble, |frozen| ended(&events, &project, frozen))
}

/// The same, for a run that is recorded here; what follows is recorded with it.
pub(crate) fn recorded_run_ended(context: &Context, run: &RunJournal, is_done: bool) {
    let follows = run_ended(context, is_done, || run.journal().load(run.id()).unwrap_or_default());
    if !follows.is_empty() {
        let _ = run.append(follows);
    }
}

/// A run broke off, because nothing could be recorded any more: that is told, and it may be the host's trouble.
pub(crate) fn broke_off(context: &Context, operation: &str, run: RunId, error: &CliError) {
    let mut fault = Fault::new(Reason::DiskFull);
    host::witness(context, None, &mut fault);
    if fault.shortage().is_none() {
        fault = Fault::new(Reason::StateInvalid);
        host::witness(context, None, &mut fault);
    }
    fault.cause = Some(SafeText::new(error.to_string()));
    let reason = fault.reason;
    let trouble = Trouble { faults: vec![&fault], ended_with: Some(reason), run: Some(run) };
    follow(context, &trouble, |frozen| {
        let given = Alert {
            severity: fault.ending_severity(),
            operation: SafeText::new(operation),
            project: SafeText::new(context.project.to_string_lossy()),
            cause: fault.cause.clone(),
            run: Some(run),
            frozen,
            ..Alert::new(reason, context::now())
        };
        Some(Message::new(&alert(&given), About::of(&given)))
    });
}
