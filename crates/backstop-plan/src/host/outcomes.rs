//! What came of attempts and integrations: events, and what the scheduler is told.

use super::{Host, Integrated, Worked};
use backstop_core::{Action, Command, Decision, Dispatch, EventKind, Failure, Fault, Happening, SafeText};
use std::time::Duration;

impl Host<'_> {
    pub(super) fn worked(&mut self, node: usize, worked: Worked) {
        let Some(running) = self.running.get(&node) else { return };
        let (attempt, stopped) = (running.attempt, running.stopped);
        let operation = self.id(node);
        if stopped && worked.fault.is_some() {
            let why = SafeText::new("it was stopped, since the run ends");
            self.push(node, [EventKind::AttemptLost { operation, attempt, why }]);
            self.command(&Command::Dropped(node));
            return;
        }
        let Worked { fault, dispatch, worker_lost, exit, signal, output, duration, delivery } = worked;
        self.push(
            node,
            [EventKind::AttemptFinished {
                operation,
                attempt,
                success: fault.is_none(),
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                exit,
                signal,
                output,
                delivery: Some(Box::new(delivery)),
            }],
        );
        if self.parts.record.phase(node).attempt > 1 {
            let recovered = EventKind::RecoveryAttempted {
                operation: Some(self.id(node)),
                strategy: "retry".to_owned(),
                success: fault.is_none(),
                attempt,
            };
            self.push(node, [recovered]);
        }
        match fault {
            Some(fault) => self.failed(node, attempt, &fault, dispatch, worker_lost),
            None if self.parts.workshop.integrates() => self.handed_in.push_back(node),
            None => self.command(&Command::Succeeded(node)),
        }
    }

    pub(super) fn failed(
        &mut self,
        node: usize,
        attempt: u32,
        fault: &Fault,
        dispatch: Dispatch,
        worker_lost: bool,
    ) {
        let operation = self.id(node);
        let mut fault = fault.clone();
        (self.parts.witness)(&mut fault);
        let fault = &fault;
        self.push(node, [EventKind::ErrorClassified { operation, attempt, fault: Box::new(fault.clone()) }]);
        self.reasons.insert(node, fault.reason);
        if self.halt_reason.is_none() || !self.parts.schedule.is_stopping() {
            self.halt_reason = Some(fault.reason);
        }
        let failure = Failure {
            dispatch,
            worker_lost,
            random: (self.parts.random)(),
            ..Failure::new(fault, self.now())
        };
        self.command(&Command::Failed(node, &failure));
    }

    pub(super) fn next_integration(&mut self) {
        if self.integrating.is_some() || self.to_integrate.is_some() {
            return;
        }
        let Some(node) = self.handed_in.pop_front() else { return };
        let Some(attempt) = self.running.get(&node).map(|running| running.attempt) else { return };
        let (operation, onto) = (self.id(node), self.parts.record.tip.clone());
        // One that was begun before and is not known to have ended is gone on with, not announced again.
        self.integration_resumed = self.parts.record.phase(node).integrating.is_some();
        if !self.integration_resumed {
            self.push(node, [EventKind::IntegrationStarted { operation, attempt, onto }]);
        }
        self.to_integrate = Some(node);
        self.integrating = Some(node);
    }

    pub(super) fn integrated(&mut self, node: usize, integrated: Integrated) {
        self.integrating = None;
        let Some(running) = self.running.get(&node) else { return };
        let (attempt, stopped) = (running.attempt, running.stopped);
        let operation = self.id(node);
        match integrated {
            Integrated::Done { tip, commit } => {
                let finished =
                    tip.map(|tip| EventKind::IntegrationFinished { operation: operation.clone(), tip });
                let made = commit.map(|(sha, subject)| EventKind::CommitMade {
                    operation: operation.clone(),
                    sha,
                    subject: Some(subject),
                });
                self.push(node, finished.into_iter().chain(made));
                self.command(&Command::Succeeded(node));
            }
            Integrated::Conflicted { files, fault } => {
                let classified = EventKind::ErrorClassified {
                    operation: operation.clone(),
                    attempt,
                    fault: fault.clone(),
                };
                self.halt_reason = Some(fault.reason);
                self.reasons.insert(node, fault.reason);
                let conflicted =
                    EventKind::IntegrationConflicted { operation: operation.clone(), files, attempt };
                let decided = EventKind::DecisionMade {
                    operation: Some(operation),
                    attempt,
                    decision: self.about_conflict(node, attempt),
                    reclassified: None,
                };
                self.push(node, [classified, conflicted, decided]);
                self.command(&Command::Conflicted(node));
            }
            // It was we who ended it: its work stays handed in.
            Integrated::Failed(_) if stopped => self.command(&Command::Dropped(node)),
            Integrated::Failed(fault) => self.failed(node, attempt, &fault, Dispatch::Answered, false),
        }
    }

    /// What the scheduler is about to say of a conflict, in words.
    pub(super) fn about_conflict(&self, node: usize, attempt: u32) -> Decision {
        let again = self.parts.schedule.decide(&Command::Conflicted(node), self.now());
        if again.iter().any(|happening| matches!(happening, Happening::Again { .. })) {
            let action = Action::Retry { after: Duration::ZERO, attempt: attempt + 1, of: attempt + 1 };
            let why = "work that does not go together is done once more, on top of what came in meanwhile";
            return Decision { action, why: why.to_owned() };
        }
        let why = "it did not go together a second time, or recovery is turned off";
        Decision { action: Action::Halt, why: why.to_owned() }
    }
}
