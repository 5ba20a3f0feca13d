//! An event of a coding agent in, an answer out, which may be nothing.
//!
//! What goes wrong here is ours and not the agent's: a line in the log of the state folder, and the
//! agent goes on.

use super::{AgentEvent, Event, ToolFailure, USUAL_PROVIDER, denial, stop, tool, transcript_file, turn};
use crate::record;
use crate::surroundings::{HookError, Surroundings};
use backstop_classify::Classifier;
use backstop_core::{EventKind, Fault, SafeText};
use backstop_runtime::aftermath::{self, Failures};
use backstop_runtime::{Project, Recorder, machine_state};
use serde_json::Value;
use std::sync::Arc;

/// Answers an event; `given` is whose models the agent uses, where somebody said so.
pub fn handle(
    bytes: &[u8],
    given: Option<&str>,
    around: &Surroundings<'_>,
) -> Result<Option<Value>, HookError> {
    let event = AgentEvent::read(bytes)?;
    let own = event.provider.unwrap_or(USUAL_PROVIDER);
    match &event.event {
        Event::Other => Ok(None),
        // A session whose provider was named starts agents of the same.
        Event::BeforeTool { tool, command } => {
            denial::answer(around, tool, command.as_deref(), given.unwrap_or(own))
        }
        Event::ToolFailed(failed) => tool::failed(around, &event, failed),
        Event::ToolEnded { call, failure } => {
            let exit = event.transcript.as_deref().and_then(|file| transcript_file::exit(file, call));
            match exit.filter(|code| *code != 0) {
                Some(_) => tool::failed(around, &event, &ToolFailure { exit, ..failure.clone() }),
                None => Ok(None),
            }
        }
        Event::Stop { held } => stop::answer(around, &event, *held),
        Event::TurnFailed { .. } => turn::failed(around, &event, given, own),
        Event::SessionEnded { reason } => turn::session_ended(around, &event, reason, given, own),
    }
}

/// A project, and where trouble with it is logged.
pub(super) struct Session<'s> {
    pub(super) around: &'s Surroundings<'s>,
    pub(super) project: Arc<Project>,
}

impl<'s> Session<'s> {
    pub(super) fn open(around: &'s Surroundings<'s>) -> Result<Self, HookError> {
        Ok(Self { around, project: Arc::new((around.open)()?) })
    }

    pub(super) fn log(&self, what: &str) {
        self.around.log(what);
    }

    /// The classifier with this project's packs; a pack that cannot be used must not keep advice
    /// back.
    pub(super) fn classifier(&self) -> Classifier {
        self.project.classifier_or_builtin(|error| self.log(&error.to_string()))
    }

    /// Adds to a fault what the machine is like, and how much is put aside.
    pub(super) fn observe(&self, fault: &mut Fault) {
        let journal = self.project.journal().ok();
        let deferred = journal.and_then(|journal| journal.deferred_count().ok());
        machine_state::observe(&self.project, deferred, fault);
    }

    fn begin(&self, event: &AgentEvent) -> Option<Recorder> {
        let begun = record::begin(&self.project, Some(event.session.clone()), "agent", None);
        begun.map_err(|error| self.log(&error.to_string())).ok()
    }

    /// Records events as a run; that it cannot be is a line in the log.
    pub(super) fn record(&self, event: &AgentEvent, kinds: Vec<EventKind>) -> Option<Recorder> {
        let recorder = self.begin(event)?;
        let recorded = recorder.end(kinds).map_err(|error| self.log(&error.to_string()));
        recorded.ok().map(|_| recorder)
    }

    /// Records a fault as a run, and closes the guard of whoever refused.
    pub(super) fn record_fault(
        &self,
        event: &AgentEvent,
        operation: &SafeText,
        attempt: u32,
        fault: &Fault,
        why: String,
        provider: Option<&str>,
    ) -> Option<Recorder> {
        let Some(recorder) = self.begin(event) else {
            // What cannot be recorded still concerns everybody who shares the limit.
            record::guard_events(&self.project, provider, fault);
            return None;
        };
        let recorded = record::fault(&self.project, &recorder, operation, attempt, fault, why, provider);
        recorded.map_err(|error| self.log(&error.to_string())).ok().map(|()| recorder)
    }

    /// What follows a fault that ended something, or that is critical.
    pub(super) fn follow(&self, recorder: Option<&Recorder>, fault: &Fault) {
        match recorder {
            Some(recorder) => aftermath::run_ended(&self.project, recorder, false),
            None => {
                let failures = Failures { faults: vec![fault], ended_with: Some(fault.reason), run: None };
                aftermath::freeze_and_notify(&self.project, &failures, |_| None);
            }
        }
    }
}
