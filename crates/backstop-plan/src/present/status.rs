//! Where a run of a plan stands.

use super::{rows, wait_sum};
use crate::record::PhaseProgress;
use crate::runs::{FoundRun, resume_command};
use backstop_core::{Outcome, SafeText, Timestamp};
use backstop_report::plan::{PlanStatus, Progress, RunState};
use backstop_runtime::host::NodeStatus;

/// Where a run stands now. `running` is the process that works on it, if it is there.
pub fn status(found: &FoundRun, running: Option<u32>, now: Timestamp) -> PlanStatus {
    let record = &found.record;
    let rows = rows(record, None, now);
    let progress = &record.progress;
    let is_over = progress.ended.is_some() || progress.halted.is_some();
    let is_complete = record.count(NodeStatus::Complete) == record.len();
    let state = match (&progress.halted, progress.ended, running) {
        (Some((reason, _)), _, _) => RunState::Halted { reason: *reason },
        (None, Some(Outcome::Done), _) if is_complete => RunState::Complete,
        (None, None, Some(pid)) => RunState::Running { pid },
        _ => RunState::Interrupted,
    };
    let until = if is_over { progress.last_at.unwrap_or(now) } else { now };
    let changed = record.phases().filter(PhaseProgress::changed_since);
    // Its attempt has no end yet: what it left lies where it worked. Or a person has ended it, and
    // it was saved.
    let is_cut_off = |phase: &PhaseProgress<'_>| {
        let was_ended = phase.node.lost && phase.node.status == NodeStatus::Pending;
        (state == RunState::Interrupted && phase.node.status == NodeStatus::Running)
            || (was_ended && !matches!(state, RunState::Running { .. }))
    };
    let cut_off = record.phases().filter(is_cut_off);
    let next = match &state {
        RunState::Halted { .. } | RunState::Interrupted => Some(SafeText::new(resume_command(record))),
        _ => None,
    };
    PlanStatus {
        plan: record.path().clone(),
        run: found.run,
        state,
        progress: Progress::of(&rows, progress.active(until), None),
        usage: progress.used(),
        waits: wait_sum(record, until),
        starts_at: progress.starts_at.map(|at| (at, at.since(now))),
        rows,
        cut_off: cut_off.map(|phase| phase.plan.shown.clone()).collect(),
        changed: changed.map(|phase| phase.plan.shown.clone()).collect(),
        next,
    }
}
