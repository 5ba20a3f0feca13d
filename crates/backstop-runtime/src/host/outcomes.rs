//! What came of attempts and integrations: events, and what the scheduler and the admission are
//! told.

use super::executor::millis;
use super::nodes::grow;
use super::{AttemptResult, Fold, Host, HostError, IntegrationResult};
use backstop_core::{Action, Command, Decision, EventKind, Failure, Fault, Happening, Reason, SafeText};
use std::time::Duration;

/// The strategy of an attempt after one whose own workspace could not be made or used.
const REGENERATED: &str = "regenerate_workspace";

impl<R: Fold + Clone + Send + 'static, C: Send> Host<'_, R, C> {
    pub(super) fn attempted(
        &mut self,
        node: usize,
        mut result: AttemptResult,
        admitted: bool,
    ) -> Result<(), HostError> {
        let Some(running) = self.running.get(&node) else { return Ok(()) };
        let (attempt, stopped) = (running.attempt, running.stopped);
        let operation = self.id(node);
        if stopped && result.fault.is_some() {
            let why = SafeText::new("it was stopped, since the run ends");
            let delivery = result.delivery.saved.is_some().then(|| Box::new(result.delivery));
            self.pending.push(EventKind::AttemptLost { operation, attempt, why, delivery });
            self.command(&Command::Dropped(node));
            return Ok(());
        }
        self.refuse_bad_nodes(&mut result);
        let AttemptResult { fault, dispatch, worker_lost, exit, signal, output, duration, delivery, events } =
            result;
        let usage = delivery.usage();
        self.pending.push(EventKind::AttemptFinished {
            operation,
            attempt,
            success: fault.is_none(),
            duration_ms: millis(duration),
            exit,
            signal,
            output,
            delivery: Some(Box::new(delivery)),
        });
        if self.progress().node(node).attempt > 1 {
            let before = self.progress().node(node).last_error().map(|error| error.fault.reason);
            let strategy = if before == Some(Reason::StateInvalid) { REGENERATED } else { "retry" };
            self.pending.push(EventKind::RecoveryAttempted {
                operation: Some(self.id(node)),
                strategy: strategy.to_owned(),
                success: fault.is_none(),
                attempt,
                detail: None,
            });
        }
        match fault {
            Some(mut fault) => {
                self.classified(node, attempt, &mut fault);
                // Recorded before anything is done about it: guards and breakers are shared with
                // others, and what they learn cannot be taken back.
                self.commit()?;
                if admitted {
                    let learned = self.parts.admission.failed(node, &fault);
                    self.pending.extend(learned);
                }
                let worked = usage.is_some_and(|usage| usage.tokens() > 0);
                let alternative = self.alternative(node, &fault);
                let experience = self.parts.admission.experience(node, &fault);
                let failure = Failure {
                    experience,
                    dispatch,
                    worker_lost,
                    worked,
                    alternative: alternative.as_deref(),
                    random: (self.parts.random)(),
                    ..Failure::new(&fault, self.now())
                };
                self.failed(node, &failure);
            }
            None => {
                self.succeeded.push(node);
                if !events.is_empty() {
                    self.pending.extend(events);
                    // The schedule must know of new nodes before it hears that this one is
                    // complete: it may be the last.
                    self.commit()?;
                }
                if self.parts.executor.integrates() {
                    self.delivered.push_back(node);
                } else {
                    self.command(&Command::Succeeded(node));
                }
            }
        }
        Ok(())
    }

    /// Nodes that cannot be added are no success: nothing of them is recorded, and whoever brought
    /// them is told why.
    fn refuse_bad_nodes(&self, result: &mut AttemptResult) {
        if result.events.is_empty() || result.fault.is_some() {
            return;
        }
        let mut trial = self.progress().clone();
        result.events.iter().for_each(|kind| trial.apply_nodes(kind));
        if let Err(error) = grow(&trial, &self.schedule, &self.ids) {
            result.fault = Some(Box::new(error.fault()));
        }
    }

    /// What failed, as it is recorded.
    fn classified(&mut self, node: usize, attempt: u32, fault: &mut Fault) {
        (self.parts.annotate_fault)(fault);
        let operation = self.id(node);
        self.pending.push(EventKind::ErrorClassified { operation, attempt, fault: Box::new(fault.clone()) });
    }

    /// Asks the scheduler what follows from a failure.
    fn failed(&mut self, node: usize, failure: &Failure<'_>) {
        let reason = failure.fault.reason;
        self.reasons.insert(node, reason);
        if self.halt_reason.is_none() || !self.schedule.is_stopping() {
            self.halt_reason = Some(reason);
        }
        self.command(&Command::Failed(node, failure));
    }

    /// Who can take over where a limit is in the way.
    fn alternative(&self, node: usize, fault: &Fault) -> Option<String> {
        let is_limit = matches!(fault.reason, Reason::RateLimited | Reason::QuotaExhausted);
        let worker = self.progress().node(node).worker.as_deref();
        is_limit.then(|| self.parts.admission.alternative(node, worker)).flatten()
    }

    /// Tells the admission of successes that are recorded now.
    pub(super) fn tell_successes(&mut self) {
        for node in std::mem::take(&mut self.succeeded) {
            let learned = self.parts.admission.succeeded(node);
            self.pending.extend(learned);
        }
    }

    pub(super) fn next_integration(&mut self) {
        if self.integrating.is_some() || self.to_integrate.is_some() {
            return;
        }
        let Some(node) = self.delivered.pop_front() else { return };
        let Some(attempt) = self.running.get(&node).map(|running| running.attempt) else { return };
        let (operation, onto) = (self.id(node), self.progress().tip.clone());
        // One that was begun before and is not known to have ended is gone on with, not announced
        // again.
        self.integration_resumed = self.progress().node(node).integrating.is_some();
        if !self.integration_resumed {
            self.pending.push(EventKind::IntegrationStarted { operation, attempt, onto });
        }
        self.to_integrate = Some(node);
        self.integrating = Some(node);
    }

    pub(super) fn integrated(&mut self, node: usize, result: IntegrationResult) {
        self.integrating = None;
        let Some(running) = self.running.get(&node) else { return };
        let (attempt, stopped) = (running.attempt, running.stopped);
        let operation = self.id(node);
        match result {
            IntegrationResult::Done { tip, commit, events } => {
                let finished =
                    tip.map(|tip| EventKind::IntegrationFinished { operation: operation.clone(), tip });
                let made = commit.map(|(sha, subject)| EventKind::CommitMade {
                    operation: operation.clone(),
                    sha,
                    subject: Some(subject),
                });
                self.pending.extend(finished.into_iter().chain(made).chain(events));
                self.command(&Command::Succeeded(node));
            }
            IntegrationResult::Conflicted { files, fault } => {
                self.halt_reason = Some(fault.reason);
                self.reasons.insert(node, fault.reason);
                let decision = self.about_conflict(node, attempt);
                self.pending.extend([
                    EventKind::ErrorClassified { operation: operation.clone(), attempt, fault },
                    EventKind::IntegrationConflicted { operation: operation.clone(), files, attempt },
                    EventKind::DecisionMade {
                        operation: Some(operation),
                        attempt,
                        decision,
                        reclassified: None,
                    },
                ]);
                self.command(&Command::Conflicted(node));
            }
            // It was we who ended it: its work stays delivered.
            IntegrationResult::Failed(_) if stopped => self.command(&Command::Dropped(node)),
            IntegrationResult::Failed(mut fault) => {
                self.classified(node, attempt, &mut fault);
                let failure = Failure { random: (self.parts.random)(), ..Failure::new(&fault, self.now()) };
                self.failed(node, &failure);
            }
        }
    }

    /// What the scheduler is about to say of a conflict, in words.
    fn about_conflict(&self, node: usize, attempt: u32) -> Decision {
        let again = self.schedule.decide(&Command::Conflicted(node), self.now());
        if again.iter().any(|happening| matches!(happening, Happening::Again { .. })) {
            let action = Action::Retry { after: Duration::ZERO, attempt: attempt + 1, of: attempt + 1 };
            let why = "work that does not go together is done once more, on top of what came in meanwhile";
            return Decision { action, why: why.to_owned() };
        }
        let why = "it did not go together a second time, or recovery is turned off";
        Decision { action: Action::Halt, why: why.to_owned() }
    }
}
