//! The state of a run, folded from its events.

use crate::{RunState, RunSummary};
use backstop_core::{EventKind, Reason, SafeText, Timestamp};

/// Applies one more event to the summary of a run.
pub(crate) fn fold(run: &mut RunSummary, kind: &EventKind, at: Timestamp) {
    match kind {
        EventKind::RunStarted { operation, folder, profile, parent } => {
            run.operation = Some(operation.clone());
            run.folder.clone_from(folder);
            run.profile.clone_from(profile);
            run.parent = run.parent.or(*parent);
            run.started_at = at;
        }
        EventKind::RunEnded { outcome, reason, attempts, duration_ms, exit, next } => {
            run.state = RunState::Ended;
            run.ended_at = Some(at);
            run.outcome = Some(*outcome);
            run.reason = *reason;
            run.attempts = *attempts;
            run.duration_ms = Some(*duration_ms);
            run.exit = *exit;
            run.next.clone_from(next);
        }
        EventKind::RunHalted { reason, resume } => {
            run.state = RunState::Halted;
            run.reason = Some(*reason);
            run.next = Some(SafeText::new(resume.clone()));
        }
        EventKind::RunResumed {} => {
            run.state = RunState::Open;
            run.ended_at = None;
            run.outcome = None;
            run.reason = None;
            run.duration_ms = None;
            run.exit = None;
            run.next = None;
        }
        // The phases of a plan each count their own attempts; the run's count is the number of
        // attempts begun.
        EventKind::AttemptStarted { .. } if is_of_nodes(&run.surface) => run.attempts += 1,
        EventKind::AttemptStarted { attempt, .. } => run.attempts = run.attempts.max(*attempt),
        EventKind::ErrorClassified { fault, .. } if is_of_nodes(&run.surface) => {
            run.reason = Some(fault.reason);
        }
        EventKind::ErrorClassified { attempt, fault, .. } => {
            run.attempts = run.attempts.max(*attempt);
            run.reason = Some(fault.reason);
        }
        EventKind::DecisionMade { reclassified: Some(reason), .. } => run.reason = Some(*reason),
        _ => {}
    }
}

/// Whether runs of this surface have several operations, each with attempts of its own.
fn is_of_nodes(surface: &str) -> bool {
    matches!(surface, "run" | "campaign")
}

/// The reason that an event is indexed by.
pub(crate) fn reason_of(kind: &EventKind) -> Option<Reason> {
    match kind {
        EventKind::RunEnded { reason, .. } => *reason,
        EventKind::RunHalted { reason, .. } => Some(*reason),
        EventKind::ErrorClassified { fault, .. } => Some(fault.reason),
        EventKind::DecisionMade { reclassified, .. } => *reclassified,
        _ => None,
    }
}

/// The attempt that an event belongs to.
pub(crate) fn attempt_of(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::AttemptStarted { attempt, .. }
        | EventKind::AttemptFinished { attempt, .. }
        | EventKind::AttemptLost { attempt, .. }
        | EventKind::ErrorClassified { attempt, .. }
        | EventKind::DecisionMade { attempt, .. }
        | EventKind::RecoveryAttempted { attempt, .. } => Some(*attempt),
        _ => None,
    }
}
