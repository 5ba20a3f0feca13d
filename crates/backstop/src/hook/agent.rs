//! `backstop hook agent`: an event of a coding agent in, an answer out, which may be empty, exit 0 always.
//!
//! What goes wrong here is ours and not the agent's: a line in the log of the state folder, and the agent goes on.

use super::{open_store, read_input, record, stop, transcript};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use crate::{aftermath, classify, host, limits, terminal};
use backstop_classify::Classifier;
use backstop_core::guard::{CLOSED_MAX, Closed, UNNAMED_WAIT};
use backstop_core::{Action, Decision, EventKind, Fault, Name, Outcome, Reason, SafeText, Severity};
use backstop_hook::agent::{
    AgentEvent, Event, REPEATS_MAX, ToolFailure, USUAL_PROVIDER, answer, fault_signature, starts_agent,
    tool_fault, turn_fault,
};
use backstop_report::{AgentFailure, agent_denied, agent_failure, agent_frozen, to_json};
use backstop_store::{HookStore, LimitStore, RunFilter, RunJournal, RunSummary};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What a turn is called where it is recorded.
const TURN: &str = "turn";
/// How long a hook that was begun before may still take.
const STILL_RUNNING: Duration = Duration::from_millis(200);

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
    let bytes = read_input().map_err(|error| CliError::Read { file: "standard input".into(), error })?;
    let event = AgentEvent::read(&bytes).map_err(CliError::HookInput)?;
    let own = event.provider.unwrap_or(USUAL_PROVIDER);
    match &event.event {
        Event::Other => Ok(None),
        Event::BeforeTool { tool, command } => {
            let started = starts_agent(tool, command.as_deref(), own);
            // A session whose provider was named starts agents of the same.
            let named = given.filter(|_| command.is_none());
            match started {
                Some(provider) if !context::is_disabled() => match frozen() {
                    Some(answer) => Ok(Some(answer)),
                    None => denied(named.unwrap_or(provider)),
                },
                _ => Ok(None),
            }
        }
        Event::ToolFailed(failed) => tool_failed(&event, failed),
        Event::ToolEnded { call, failure } => {
            let exit = event.transcript.as_deref().and_then(|file| transcript::exit(file, call));
            match exit.filter(|code| *code != 0) {
                Some(_) => tool_failed(&event, &ToolFailure { exit, ..failure.clone() }),
                None => Ok(None),
            }
        }
        Event::Stop { held } => stop::answer(&event, *held),
        Event::TurnFailed { .. } => turn_failed(&event, given, own),
        Event::SessionEnded { reason } => {
            let unheard = unheard(&event)
                .and_then(|broken| broken.map_or(Ok(None), |broken| turn_failed(&broken, given, own)));
            if let Err(error) = unheard {
                log(&error.to_string());
            }
            session_ended(&event, reason)
        }
    }
}

/// Says no where no new work may begin in this project.
fn frozen() -> Option<Value> {
    let freeze = context::user_folder()?.frozen(&context::project().ok()?).ok()??;
    Some(answer::deny(&agent_frozen(freeze.reason, &freeze.why)))
}

/// The broken turn that a session ended with, if nothing has told of it. Claude Code does not wait for the hooks of one:
/// where it ends at once, they are ended with it or never begin.
fn unheard(event: &AgentEvent) -> Result<Option<AgentEvent>, CliError> {
    let Some(broken) = event.transcript.as_deref().and_then(transcript::broken) else { return Ok(None) };
    std::thread::sleep(STILL_RUNNING);
    let context = Context::new(&[], None)?;
    let filter = RunFilter {
        since: Some(broken.at),
        surface: Some("hook".to_owned()),
        operation_contains: Some(TURN.to_owned()),
        ..RunFilter::default()
    };
    let recorded =
        context.existing_journal()?.map(|journal| journal.runs(&filter)).transpose()?.unwrap_or_default();
    let is_it = |run: &RunSummary| {
        run.session.as_ref() == Some(&event.session)
            && run.operation.as_ref().is_some_and(|operation| operation.raw() == TURN)
    };
    let told = Event::TurnFailed { error: broken.error, said: broken.said };
    Ok((!recorded.iter().any(is_it)).then(|| AgentEvent { event: told, ..event.clone() }))
}

/// Says no where the provider takes no requests now.
fn denied(provider: &str) -> Result<Option<Value>, CliError> {
    let Some(folder) = context::user_folder() else { return Ok(None) };
    let provider: Name = provider.parse()?;
    let Some(store) = LimitStore::open_existing(&folder)? else { return Ok(None) };
    let closed = store.guard(&provider)?.and_then(|guard| guard.closed);
    Ok(closed.map(|closed| {
        let left = closed.left(context::now());
        let why = SafeText::new(closed.why);
        answer::deny(&agent_denied(provider.as_str(), context::now().after(left), left, &why))
    }))
}

/// The classifier with this project's packs; a pack that cannot be used must not keep advice back.
pub(super) fn classifier(context: &Context) -> Classifier {
    classify::classifier_with(&context.config.packs(), &context.redactor).unwrap_or_else(|error| {
        log(&error.to_string());
        Classifier::builtin().redacting(context.redactor.as_ref().clone())
    })
}

fn tool_failed(event: &AgentEvent, failed: &ToolFailure) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    let failed = failed.clone().masked(&context.redactor);
    let mut fault = tool_fault(&failed, &classifier(&context), context::now());
    host::witness(&context, None, &mut fault);
    let fault = fault;
    let streak = context.folder().and_then(|folder| {
        let store = open_store(&folder)?;
        Ok(store.note_streak(event.session.raw(), &fault_signature(&failed.tool, &fault))?)
    });
    let times = streak.unwrap_or_else(|error| {
        log(&error.to_string());
        1
    });
    let operation = failed.command.clone().unwrap_or_else(|| failed.tool.clone());
    let why = format!("the agent decides, and is advised; the same fault {times} times in a row");
    let run = keep(&context, event, events(&operation, times, &fault, why, None));
    // One attempt of the agent's is no ending. What is critical concerns everybody at once.
    if let Some(run) = run.filter(|_| fault.severity == Severity::Critical) {
        aftermath::recorded_run_ended(&context, &run, false);
    }
    let told = AgentFailure {
        tool: &failed.tool,
        command: failed.command.as_ref(),
        fault: &fault,
        times,
        times_max: REPEATS_MAX,
    };
    Ok(Some(answer::context(failed.event, &agent_failure(&told))))
}

/// A turn that broke off is recorded; a rate limit closes the guard for everybody.
fn turn_failed(
    event: &AgentEvent,
    given: Option<&str>,
    own: &'static str,
) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    let Some(mut fault) = turn_fault(&event.event, &classifier(&context), context::now()) else {
        return Ok(None);
    };
    host::witness(&context, None, &mut fault);
    let named = fault.facts.provider.as_ref().map(|provider| provider.raw().to_ascii_lowercase());
    let provider = given.map(str::to_owned).or(named).unwrap_or_else(|| own.to_owned());
    let guard = if fault.reason == Reason::RateLimited {
        let fed = close(&context, &provider, &fault);
        fed.map_err(|error| log(&error.to_string())).ok()
    } else {
        None
    };
    let why = "the turn is over, and nobody can be asked to go on".to_owned();
    if let Some(run) = keep(&context, event, events(&SafeText::new(TURN), 1, &fault, why, guard)) {
        aftermath::recorded_run_ended(&context, &run, false);
    }
    Ok(None)
}

/// Closes a provider's guard for as long as it asks, or for the usual time.
fn close(context: &Context, provider: &str, fault: &Fault) -> Result<EventKind, CliError> {
    let provider: Name = provider.parse()?;
    let now = context::now();
    let asked = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let why = if asked.is_some() { "the server asks to wait" } else { "a refusal without a time" };
    let wait = asked.unwrap_or(UNNAMED_WAIT).min(CLOSED_MAX);
    let closed = Closed { learned_at: now, until: now.after(wait), why: why.to_owned() };
    let state = limits::open(context)?.learn(&provider, Some(closed))?;
    Ok(EventKind::GuardUpdated { provider, until: state.closed.map(|closed| closed.until) })
}

fn session_ended(event: &AgentEvent, reason: &SafeText) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    if let Some(store) = HookStore::open_existing(&context.folder()?)? {
        store.end_session(event.session.raw())?;
    }
    let state = EventKind::StateEntered {
        operation: None,
        state: "session_end".to_owned(),
        error_type: (!reason.is_empty()).then(|| reason.raw().to_owned()),
        context: None,
    };
    let operation = SafeText::new("session");
    keep(&context, event, vec![started(&context, &operation), state, ended(Outcome::Done, None)]);
    Ok(None)
}

/// Records; that it cannot be is a line in the log.
pub(super) fn keep(context: &Context, event: &AgentEvent, events: Vec<EventKind>) -> Option<RunJournal> {
    let session = Some(event.session.clone());
    let recorded = context
        .journal()
        .and_then(|journal| record(context, &journal, session, "agent", context::random(), events));
    recorded.map_err(|error| log(&error.to_string())).ok()
}

pub(super) fn started(context: &Context, operation: &SafeText) -> EventKind {
    let folder = Some(SafeText::new(context.project.display().to_string()));
    EventKind::RunStarted { operation: operation.clone(), folder, profile: None, parent: None }
}

pub(super) fn ended(outcome: Outcome, reason: Option<Reason>) -> EventKind {
    EventKind::RunEnded { outcome, reason, attempts: 1, duration_ms: 0, exit: None, next: None }
}

/// What is recorded of a fault about which only the agent can do something.
fn events(
    operation: &SafeText,
    attempt: u32,
    fault: &Fault,
    why: String,
    guard: Option<EventKind>,
) -> Vec<EventKind> {
    let mut all = vec![
        EventKind::RunStarted { operation: operation.clone(), folder: None, profile: None, parent: None },
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
