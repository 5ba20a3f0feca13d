//! The end of a request: recorded where something failed, counted where nothing did, and told to
//! whoever learns from it. A request that nobody waits for any more ends as interrupted.

use super::State;
use backstop_core::{Action, Decision, EventKind, Fault, Outcome, Reason, SafeText, Signal, Usage};
use backstop_runtime::aftermath;
use backstop_runtime::operation::OperationRun;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A request that is under way.
pub(super) struct Closing {
    pub(super) state: Arc<State>,
    pub(super) run: OperationRun,
    name: SafeText,
    began: Instant,
    /// How many attempts there were, once that is known.
    pub(super) attempts: u32,
    /// What is recorded if it goes well.
    pub(super) unrecorded: Vec<EventKind>,
    is_open: bool,
}

impl Closing {
    pub(super) fn new(state: Arc<State>, run: OperationRun, name: &str) -> Self {
        let (name, began) = (SafeText::new(name), Instant::now());
        Self { state, run, name, began, attempts: 0, unrecorded: Vec::new(), is_open: true }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn ended(&self, outcome: Outcome, reason: Option<Reason>) -> EventKind {
        EventKind::RunEnded {
            outcome,
            reason,
            attempts: self.attempts,
            duration_ms: u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX),
            exit: None,
            next: None,
        }
    }

    /// It went well: nothing is written, unless something had failed before.
    pub(super) fn done(mut self, model: Option<&str>, usage: Usage) {
        self.is_open = false;
        let usage = self.state.settings.prices.priced(model, usage);
        self.state.used(&self.run, model, usage);
        let mut events = std::mem::take(&mut self.unrecorded);
        events.push(self.ended(Outcome::Done, None));
        let was_recorded = self.run.recorder.is_recorded();
        let _ = self.run.recorder.end(events);
        if was_recorded {
            aftermath::run_ended(&self.state.project, &self.run.recorder, true);
        }
    }

    /// It ended without success, which the engine has recorded.
    pub(super) fn surfaced(mut self, outcome: Outcome, reason: Reason) {
        self.is_open = false;
        let _ = self.run.recorder.end(vec![self.ended(outcome, Some(reason))]);
        aftermath::run_ended(&self.state.project, &self.run.recorder, false);
    }

    /// The proxy ends before the answer does, as far as it has come. Gives the fault, for the
    /// client.
    pub(super) fn interrupted(mut self, model: Option<&str>, usage: Usage) -> Fault {
        self.is_open = false;
        let usage = self.state.settings.prices.priced(model, usage);
        self.state.used(&self.run, model, usage);
        let _ = self.run.recorder.end(vec![self.ended(Outcome::Interrupted, Some(Reason::Interrupted))]);
        aftermath::run_ended(&self.state.project, &self.run.recorder, false);
        let mut fault = Fault::new(Reason::Interrupted);
        fault.cause = Some(SafeText::new("the proxy was told to end before this answer was complete"));
        fault.suggested_action = SafeText::new("send the request again");
        fault
    }

    /// It failed after content had been passed on: it cannot be tried again unseen. Gives the
    /// fault, for the client.
    pub(super) fn broke(mut self, signal: &Signal, model: Option<&str>, usage: Usage) -> Fault {
        self.is_open = false;
        let usage = self.state.settings.prices.priced(model, usage);
        self.state.used(&self.run, model, usage);
        let fault = self.run.classifier.classify(signal).unwrap_or_else(|| Fault::new(Reason::Unknown));
        let attempt = self.attempts;
        let failed = vec![
            EventKind::AttemptFinished {
                operation: self.name.clone(),
                attempt,
                success: false,
                duration_ms: u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX),
                exit: None,
                signal: None,
                output: None,
                delivery: None,
            },
            EventKind::ErrorClassified {
                operation: self.name.clone(),
                attempt,
                fault: Box::new(fault.clone()),
            },
        ];
        let _ = self.run.recorder.append(failed);
        let mut follows = self.run.admission.failed(&fault);
        let why = format!(
            "{}: content had been passed on already, so that it cannot be tried again unseen",
            fault.reason
        );
        let decision = Decision { action: Action::Surface, why };
        follows.push(EventKind::DecisionMade { operation: None, attempt, decision, reclassified: None });
        let _ = self.run.recorder.append(follows);
        let _ = self.run.recorder.end(vec![self.ended(Outcome::Failed, Some(fault.reason))]);
        aftermath::run_ended(&self.state.project, &self.run.recorder, false);
        fault
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // The client has hung up.
        if self.is_open && self.run.recorder.is_recorded() {
            let _ = self.run.recorder.end(vec![self.ended(Outcome::Interrupted, Some(Reason::Interrupted))]);
            self.run.recorder.close();
        }
    }
}
