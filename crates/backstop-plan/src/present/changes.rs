//! Turns events into the lines that people read while a plan runs.

use super::rows::{short_hash, wait};
use crate::record::{PhaseProgress, RunRecord, fault_message};
use crate::view::blockers;
use backstop_core::{Action, Event, EventKind, NodeState, SafeText, Schedule};
use backstop_report::plan::{Change, ChangeKind, RunningPhase, Then};
use backstop_runtime::host::NodeStatus;
use std::time::Duration;

/// The change of a phase that an event stands for, where it is worth a line. The event is applied
/// to `record` already.
pub fn change(event: &Event, record: &RunRecord, schedule: &Schedule) -> Option<Change> {
    let at = |id: &SafeText| record.progress.number(id.raw());
    let (id, kind) = match &event.kind {
        EventKind::AttemptStarted { operation, .. } => {
            let phase = record.phase(at(operation)?).node;
            let of = record.plan.max_attempts.max(phase.attempt);
            (operation, ChangeKind::Started { attempt: phase.attempt, of })
        }
        EventKind::SessionStarted { operation, agent, .. } => {
            let phase = record.phase(at(operation)?).node;
            phase.session.as_ref().filter(|session| session.continued)?;
            (operation, ChangeKind::SameSession { attempt: phase.attempt, agent: agent.as_str().into() })
        }
        EventKind::DecisionMade { operation: Some(operation), decision, .. } => {
            let node = at(operation)?;
            let error = record.phase(node).node.errors.last()?;
            let then = match (&decision.action, schedule.state(node)) {
                (action, _) if !action.goes_on() => Then::Fails,
                (_, NodeState::Waiting { siblings, .. }) if !siblings.is_empty() => {
                    Then::RetriedAfter(siblings.iter().map(|n| record.phase(*n).plan.shown.clone()).collect())
                }
                (Action::Fallback { to }, _) => Then::TakenOver(SafeText::new(to.clone())),
                (_, NodeState::Waiting { .. }) if record.phase(node).node.wait.is_some() => {
                    let limit = wait(record, record.phase(node).node, event.at)?;
                    Then::Waits { limit, beside: running_beside(record, node) }
                }
                (Action::Retry { after, .. } | Action::AwaitGuard { after, .. }, _) if !after.is_zero() => {
                    Then::RetriedIn(*after)
                }
                _ => Then::RetriedNow,
            };
            let (reason, message) = (error.fault.reason, fault_message(&error.fault));
            (operation, ChangeKind::AttemptFailed { attempt: error.attempt, reason, message, then })
        }
        EventKind::GateFinished {
            gate,
            passed,
            operation: Some(operation),
            reason,
            flaky,
            duration_ms,
            ..
        } => {
            let gate = SafeText::new(gate.clone());
            let kind = match (passed, reason) {
                (true, _) if !flaky.is_empty() => ChangeKind::Flaky { tests: flaky.clone() },
                (true, _) => ChangeKind::GatePassed { gate, elapsed: Duration::from_millis(*duration_ms) },
                (false, reason) => {
                    let reason = reason.unwrap_or(backstop_core::Reason::Unknown);
                    ChangeKind::GateFailed { gate, reason, message: SafeText::default() }
                }
            };
            (operation, kind)
        }
        EventKind::IntegrationConflicted { operation, files, .. } => {
            let files = files.iter().map(|file| SafeText::new(file.clone())).collect();
            let rerun = !matches!(schedule.state(at(operation)?), NodeState::Failed);
            (operation, ChangeKind::Conflicted { files, rerun })
        }
        EventKind::CommitMade { operation, sha, subject } => {
            let (sha, subject) = (SafeText::new(short_hash(sha)), subject.clone().unwrap_or_default());
            (operation, ChangeKind::Committed { sha, subject })
        }
        EventKind::AttemptLost { operation, attempt, .. } => {
            (operation, ChangeKind::Stopped { attempt: *attempt })
        }
        EventKind::StateEntered { operation: Some(operation), .. } => {
            let phase = record.phase(at(operation)?);
            let kind = match phase.node.status {
                NodeStatus::Complete if phase.node.skipped => {
                    ChangeKind::Skipped { why: SafeText::default() }
                }
                NodeStatus::Complete => ChangeKind::Complete {
                    elapsed: Duration::from_millis(phase.node.worked_ms),
                    attempts: phase.node.attempt,
                },
                NodeStatus::Blocked => {
                    let shown = |id: &String| record.phase_of(id).map(|phase| phase.plan.shown.clone());
                    ChangeKind::Blocked {
                        by: blockers(record, &phase.plan.id).iter().filter_map(shown).collect(),
                    }
                }
                // Shown with the decision that led to it.
                _ => return None,
            };
            (operation, kind)
        }
        _ => return None,
    };
    let phase = record.phase_of(id.raw())?;
    Some(Change { id: phase.plan.shown.clone(), name: phase.plan.name.clone(), kind })
}

/// The phases that are running beside this one.
fn running_beside(record: &RunRecord, node: usize) -> Vec<RunningPhase> {
    let others = (0..record.progress.nodes.len()).filter(|other| *other != node);
    let running = others.map(|other| record.phase(other)).filter(|phase| phase.node.is_cut_off());
    let agent = |phase: &PhaseProgress<'_>| {
        phase.node.session.as_ref().map(|session| SafeText::new(session.agent.clone()))
    };
    running.map(|phase| RunningPhase { id: phase.plan.shown.clone(), agent: agent(&phase) }).collect()
}
