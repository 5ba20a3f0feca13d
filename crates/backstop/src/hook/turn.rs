//! A turn that broke off, and the end of a session.

use super::agent::{classifier, ended, events, follow, journal, keep, log, started, witness};
use super::transcript;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::limits;
use backstop_core::{EventKind, Fault, Name, Outcome, Reason, SafeText, Timestamp};
use backstop_hook::agent::{AgentEvent, Event, turn_fault};
use backstop_store::{HookStore, RunFilter, RunSummary};
use serde_json::Value;
use std::time::Duration;

/// What a turn is called where it is recorded,
const TURN: &str = "turn";
/// and what the end of a session is.
const SESSION: &str = "session";
/// How long a hook that was begun before may still take.
const STILL_RUNNING: Duration = Duration::from_millis(200);
/// The hooks of a turn and of its session's end come in any order, but within this.
const TOGETHER: Duration = Duration::from_secs(60);

/// A turn that broke off is recorded and told; a rate limit closes the guard for everybody.
pub(super) fn failed(
    event: &AgentEvent,
    given: Option<&str>,
    own: &'static str,
) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    // Where the session's end was quicker, it has told of this already.
    let lately = context::now().before(TOGETHER);
    if is_recorded(&context, event, SESSION, lately)? && is_recorded(&context, event, TURN, lately)? {
        return Ok(None);
    }
    broke_off(&context, event, given, own);
    Ok(None)
}

fn broke_off(context: &Context, event: &AgentEvent, given: Option<&str>, own: &'static str) {
    let Some(mut fault) = turn_fault(&event.event, &classifier(context), context::now()) else { return };
    let journal = journal(context);
    witness(context, journal.as_ref(), &mut fault);
    let named = fault.facts.provider.as_ref().map(|provider| provider.raw().to_ascii_lowercase());
    let provider = given.map(str::to_owned).or(named).unwrap_or_else(|| own.to_owned());
    let guard = if fault.reason == Reason::RateLimited {
        close(context, &provider, &fault).map_err(|error| log(&error.to_string())).ok()
    } else {
        None
    };
    let why = "the turn is over, and nobody can be asked to go on".to_owned();
    let run =
        keep(context, journal.as_ref(), event, events(context, &SafeText::new(TURN), 1, &fault, why, guard));
    follow(context, run.as_ref(), &fault);
}

/// Closes a provider's guard.
fn close(context: &Context, provider: &str, fault: &Fault) -> Result<EventKind, CliError> {
    let provider: Name = provider.parse()?;
    let state = limits::learn_refusal(&limits::open(context)?, &provider, fault)?;
    Ok(EventKind::GuardUpdated { provider, until: state.closed.map(|closed| closed.until) })
}

/// A session is over: what was counted for it is forgotten. A turn that it ended with and that nothing has told of is told now:
/// Claude Code does not wait for the hooks of one, and where it ends at once they are ended with it or never begin.
pub(super) fn session_ended(
    event: &AgentEvent,
    reason: &SafeText,
    given: Option<&str>,
    own: &'static str,
) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    if let Some(broken) = event.transcript.as_deref().and_then(transcript::broken) {
        std::thread::sleep(STILL_RUNNING);
        match is_recorded(&context, event, TURN, broken.at) {
            Ok(true) => {}
            Ok(false) => {
                let told = Event::TurnFailed { error: broken.error, said: broken.said };
                broke_off(&context, &AgentEvent { event: told, ..event.clone() }, given, own);
            }
            Err(error) => log(&error.to_string()),
        }
    }
    if let Some(store) = HookStore::open_existing(&context.folder()?)? {
        store.end_session(event.session.raw())?;
    }
    let state = EventKind::StateEntered {
        operation: None,
        state: "session_end".to_owned(),
        error_type: (!reason.is_empty()).then(|| reason.raw().to_owned()),
        context: None,
    };
    keep(
        &context,
        journal(&context).as_ref(),
        event,
        vec![started(&context, &SafeText::new(SESSION)), state, ended(Outcome::Done, None)],
    );
    Ok(None)
}

/// Whether something of this session was recorded since then.
fn is_recorded(
    context: &Context,
    event: &AgentEvent,
    what: &str,
    since: Timestamp,
) -> Result<bool, CliError> {
    let filter = RunFilter {
        since: Some(since),
        surface: Some("hook".to_owned()),
        operation_contains: Some(what.to_owned()),
        ..RunFilter::default()
    };
    let runs =
        context.existing_journal()?.map(|journal| journal.runs(&filter)).transpose()?.unwrap_or_default();
    let is_it = |run: &RunSummary| {
        run.session.as_ref() == Some(&event.session)
            && run.operation.as_ref().is_some_and(|operation| operation.raw() == what)
    };
    Ok(runs.iter().any(is_it))
}
