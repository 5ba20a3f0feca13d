//! A turn that broke off, and the end of a session.

use super::handle::Session;
use super::{AgentEvent, Event, transcript_file, turn_fault};
use crate::record::{ended, started_event};
use crate::surroundings::{HookError, Surroundings};
use backstop_core::{EventKind, Outcome, SafeText, Timestamp};
use backstop_runtime::ProjectError;
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
    around: &Surroundings<'_>,
    event: &AgentEvent,
    given: Option<&str>,
    own: &'static str,
) -> Result<Option<Value>, HookError> {
    let session = Session::open(around)?;
    // Where the session's end was quicker, it has told of this already.
    let lately = (around.now)().before(TOGETHER);
    if is_recorded(&session, event, SESSION, lately)? && is_recorded(&session, event, TURN, lately)? {
        return Ok(None);
    }
    broke_off(&session, event, given, own);
    Ok(None)
}

fn broke_off(session: &Session<'_>, event: &AgentEvent, given: Option<&str>, own: &'static str) {
    let now = (session.around.now)();
    let Some(mut fault) = turn_fault(&event.event, &session.classifier(), now) else { return };
    session.observe(&mut fault);
    let named = fault.facts.provider.as_ref().map(|provider| provider.raw().to_ascii_lowercase());
    let provider = given.map(str::to_owned).or(named).unwrap_or_else(|| own.to_owned());
    let why = "the turn is over, and nobody can be asked to go on".to_owned();
    let turn = SafeText::new(TURN);
    let recorder = session.record_fault(event, &turn, 1, &fault, why, Some(&provider));
    session.follow(recorder.as_ref(), &fault);
}

/// A session is over: what was counted for it is forgotten. A turn that it ended with and that
/// nothing has told of is told now: Claude Code does not wait for the hooks of one, and where it
/// ends at once they are ended with it or never begin.
pub(super) fn session_ended(
    around: &Surroundings<'_>,
    event: &AgentEvent,
    reason: &SafeText,
    given: Option<&str>,
    own: &'static str,
) -> Result<Option<Value>, HookError> {
    let session = Session::open(around)?;
    let broken = event.transcript.as_deref().and_then(|file| transcript_file::broken(file, (around.now)()));
    if let Some(broken) = broken {
        std::thread::sleep(STILL_RUNNING);
        match is_recorded(&session, event, TURN, broken.at) {
            Ok(true) => {}
            Ok(false) => {
                let failed = Event::TurnFailed { error: broken.error, said: broken.said };
                broke_off(&session, &AgentEvent { event: failed, ..event.clone() }, given, own);
            }
            Err(error) => session.log(&error.to_string()),
        }
    }
    if let Some(store) = HookStore::open_existing(session.project.folder()?)? {
        store.end_session(event.session.raw())?;
    }
    let state = EventKind::StateEntered {
        operation: None,
        state: "session_end".to_owned(),
        error_type: (!reason.is_empty()).then(|| reason.raw().to_owned()),
        context: None,
    };
    let begun = started_event(&session.project, &SafeText::new(SESSION));
    session.record(event, vec![begun, state, ended(Outcome::Done, None)]);
    Ok(None)
}

/// Whether something of this session was recorded since then.
fn is_recorded(
    session: &Session<'_>,
    event: &AgentEvent,
    what: &str,
    since: Timestamp,
) -> Result<bool, ProjectError> {
    let filter = RunFilter {
        since: Some(since),
        surface: Some("hook".to_owned()),
        operation_contains: Some(what.to_owned()),
        ..RunFilter::default()
    };
    let journal = session.project.existing_journal()?;
    let runs = journal.map(|journal| journal.runs(&filter)).transpose()?.unwrap_or_default();
    let is_it = |run: &RunSummary| {
        run.session.as_ref() == Some(&event.session)
            && run.operation.as_ref().is_some_and(|operation| operation.raw() == what)
    };
    Ok(runs.iter().any(is_it))
}
