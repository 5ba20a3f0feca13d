//! `backstop hook agent`: an event of a coding agent in, an answer out, which may be empty, exit 0 always.
//!
//! What goes wrong here is ours and not the agent's: a line in the log of the state folder, and the agent goes on.

use super::{denial, read_input, record, stop, tool, transcript, turn};
use crate::aftermath::{self, Trouble};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use crate::{classify, host, terminal};
use backstop_classify::Classifier;
use backstop_core::{Action, Decision, EventKind, Fault, Outcome, Reason, SafeText};
use backstop_hook::agent::{AgentEvent, Event, ToolFailure, USUAL_PROVIDER, answer};
use backstop_report::to_json;
use backstop_store::{Journal, RunJournal};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long an event may take to come in: agents end their hooks after ten seconds, and what they end says nothing.
const INPUT_MAX: Duration = Duration::from_secs(5);

/// Answers an event. Gives the exit code, which is always the same.
pub(super) fn run(provider: Option<&str>) -> u8 {
    // A panic is a line in the log like everything else.
    std::panic::set_hook(Box::new(|_| {}));
    let said = match catch_unwind(AssertUnwindSafe(|| handle(provider))) {
        Ok(Ok(said)) => said.filter(|_| !context::is_disabled()),
        Ok(Err(error)) => {
            log(&error.to_string());
            None
        }
        Err(_) => {
            log("it panicked; please report this with the event that it was given");
            None
        }
    };
    say(said)
}

/// Answers, also where there is nothing to say: an agent that reads JSON finds some. Gives the exit code.
pub(super) fn say(said: Option<Value>) -> u8 {
    let said = said.unwrap_or_else(answer::nothing);
    if let Err(error) = terminal::print(&format!("{}\n", to_json(&said))) {
        log(&error.to_string());
    }
    DONE
}

/// Writes down what went wrong. Where even that fails, nobody is to be bothered.
pub(super) fn log(what: &str) {
    let folder = context::user_folder();
    if let Some(folder) = folder {
        let _ = folder.log_hook(&format!("hook agent: {what}"));
    }
}

fn handle(given: Option<&str>) -> Result<Option<Value>, CliError> {
    let bytes =
        read_input(INPUT_MAX).map_err(|error| CliError::Read { file: "standard input".into(), error })?;
    let event = AgentEvent::read(&bytes).map_err(CliError::HookInput)?;
    let own = event.provider.unwrap_or(USUAL_PROVIDER);
    match &event.event {
        Event::Other => Ok(None),
        // A session whose provider was named starts agents of the same.
        Event::BeforeTool { tool, command } => denial::answer(tool, command.as_deref(), given.unwrap_or(own)),
        Event::ToolFailed(failed) => tool::failed(&event, failed),
        Event::ToolEnded { call, failure } => {
            let exit = event.transcript.as_deref().and_then(|file| transcript::exit(file, call));
            match exit.filter(|code| *code != 0) {
                Some(_) => tool::failed(&event, &ToolFailure { exit, ..failure.clone() }),
                None => Ok(None),
            }
        }
        Event::Stop { held } => stop::answer(&event, *held),
        Event::TurnFailed { .. } => turn::failed(&event, given, own),
        Event::SessionEnded { reason } => turn::session_ended(&event, reason, given, own),
    }
}

/// The classifier with this project's packs; a pack that cannot be used must not keep advice back.
pub(super) fn classifier(context: &Context) -> Classifier {
    classify::classifier_or_builtin(context, |error| log(&error.to_string()))
}

/// The journal, where it can be had; that it cannot is a line in the log.
pub(super) fn journal(context: &Context) -> Option<Journal> {
    context.journal().map_err(|error| log(&error.to_string())).ok()
}

/// Adds to a fault what the host is like, and how much is put aside.
pub(super) fn witness(context: &Context, journal: Option<&Journal>, fault: &mut Fault) {
    host::witness(context, journal.and_then(|journal| journal.deferred_count().ok()), fault);
}

/// Records; that it cannot be is a line in the log.
pub(super) fn keep(
    context: &Context,
    journal: Option<&Journal>,
    event: &AgentEvent,
    events: Vec<EventKind>,
) -> Option<RunJournal> {
    let session = Some(event.session.clone());
    let recorded = record(context, journal?, session, "agent", context::random(), events);
    recorded.map_err(|error| log(&error.to_string())).ok()
}

/// What follows a fault that ended something, or that is critical.
pub(super) fn follow(context: &Context, run: Option<&RunJournal>, fault: &Fault) {
    match run {
        Some(run) => aftermath::recorded_run_ended(context, run, false),
        None => {
            let trouble = Trouble { faults: vec![fault], ended_with: Some(fault.reason), run: None };
            aftermath::follow(context, &trouble, |_| None);
        }
    }
}

pub(super) fn started(context: &Context, operation: &SafeText) -> EventKind {
    let folder = Some(SafeText::new(context.project.display().to_string()));
    EventKind::RunStarted { operation: operation.clone(), folder, profile: None, parent: None }
}

pub(super) fn ended(outcome: Outcome, reason: Option<Reason>) -> EventKind {
    EventKind::RunEnded { outcome, reason, attempts: 1, duration_ms: 0, exit: None, next: None }
}

/// What is recorded of a fault about which only the agent can do something.
pub(super) fn events(
    context: &Context,
    operation: &SafeText,
    attempt: u32,
    fault: &Fault,
    why: String,
    guard: Option<EventKind>,
) -> Vec<EventKind> {
    let mut all = vec![
        started(context, operation),
        EventKind::ErrorClassified { operation: operation.clone(), attempt, fault: Box::new(fault.clone()) },
    ];
    all.extend(guard);
    all.push(EventKind::DecisionMade {
        operation: None,
        attempt,
        decision: Decision { action: Action::Surface, why },
        reclassified: None,
    });
    all.push(ended(Outcome::Failed, Some(fault.reason)));
    all
}
