//! The lines of the execution log: one for each event that is worth one.

use crate::record::{RunRecord, fault_message};
use backstop_core::{Action, Event, EventKind, Reason, SafeText};
use backstop_report::plan::{LogEvent, log_line as line};
use backstop_runtime::host::NodeStatus;
use std::time::Duration;

/// The line of an event in the execution log, where it has one.
pub(super) fn log_line(event: &Event, record: &RunRecord) -> Option<String> {
    let node = |id: &SafeText| record.progress.nodes.get(id.raw());
    let logged = match &event.kind {
        EventKind::RunStarted { operation, .. } => {
            LogEvent::Start { run: event.run, plan: operation.clone(), phases: record.len() as u64 }
        }
        EventKind::PlanLoaded { plan } => LogEvent::Config(vec![
            ("commit", SafeText::new(plan.commit.clone())),
            ("isolation", SafeText::new(plan.isolation.clone())),
            ("phases", SafeText::new(plan.phases.len().to_string())),
        ]),
        EventKind::RunResumed {} => {
            LogEvent::Resume { run: event.run, done: record.count(NodeStatus::Complete) as u64 }
        }
        EventKind::AttemptStarted { operation, .. } => {
            let attempt = node(operation)?.attempt;
            let of = record.plan.max_attempts.max(attempt);
            LogEvent::PhaseStart { phase: operation.clone(), attempt, of }
        }
        EventKind::AttemptLost { operation, why, .. } => LogEvent::PhaseFail {
            phase: operation.clone(),
            attempt: node(operation)?.attempt,
            reason: Reason::Interrupted,
            message: why.clone(),
        },
        EventKind::ErrorClassified { operation, fault, .. } => LogEvent::PhaseFail {
            phase: operation.clone(),
            attempt: node(operation)?.attempt,
            reason: fault.reason,
            message: fault_message(fault),
        },
        EventKind::DecisionMade { operation: Some(operation), decision, .. } => match &decision.action {
            Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                if after.is_zero() {
                    LogEvent::Retry {
                        phase: operation.clone(),
                        attempt: *attempt,
                        of: *of,
                        after: Vec::new(),
                    }
                } else {
                    let last = node(operation).and_then(|node| node.errors.last());
                    LogEvent::Wait {
                        phase: operation.clone(),
                        reason: last.map_or(Reason::Unknown, |error| error.fault.reason),
                        until: Some(event.at.after(*after)),
                    }
                }
            }
            _ => return None,
        },
        EventKind::GateFinished { gate, passed, operation: Some(phase), duration_ms, .. } => {
            LogEvent::Verify {
                phase: phase.clone(),
                gate: SafeText::new(gate.clone()),
                passed: *passed,
                elapsed: Duration::from_millis(*duration_ms),
            }
        }
        EventKind::IntegrationFinished { operation, tip } => {
            LogEvent::Integrate { phase: operation.clone(), tip: SafeText::new(tip.clone()) }
        }
        EventKind::IntegrationConflicted { operation, files, .. } => LogEvent::Conflict {
            phase: operation.clone(),
            files: files.iter().map(|file| SafeText::new(file.clone())).collect(),
        },
        EventKind::CommitMade { operation, sha, subject } => LogEvent::Commit {
            phase: operation.clone(),
            sha: SafeText::new(sha.clone()),
            subject: subject.clone().unwrap_or_default(),
        },
        EventKind::StateEntered { operation: Some(phase), state, .. }
            if state == NodeStatus::Complete.name() =>
        {
            let progress = node(phase)?;
            LogEvent::PhaseComplete {
                phase: phase.clone(),
                attempt: progress.attempt,
                elapsed: Duration::from_millis(progress.worked_ms),
            }
        }
        EventKind::Override { by, what, rationale } => {
            LogEvent::Override { by: by.clone(), what: what.clone(), rationale: rationale.clone() }
        }
        EventKind::RunHalted { reason, resume } => LogEvent::Halt {
            reason: *reason,
            message: SafeText::new(reason.info().remedy),
            resume: SafeText::new(resume.clone()),
        },
        EventKind::RunEnded { duration_ms, .. } => {
            LogEvent::Complete { phases: record.len() as u64, elapsed: Duration::from_millis(*duration_ms) }
        }
        _ => return None,
    };
    Some(format!("{}\n", line(event.at, &logged).trim_end()))
}
