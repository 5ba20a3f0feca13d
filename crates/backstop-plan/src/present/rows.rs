//! A row for each phase: its state, attempts, time and last error.

use crate::record::{PhaseProgress, RunRecord, fault_message};
use crate::view::blockers;
use backstop_core::{NodeState, SafeText, Schedule, Timestamp};
use backstop_report::plan::{Ahead, Course, LimitWaitRow, PhaseRow, PhaseState, remaining};
use backstop_runtime::host::{NodeRecord, NodeStatus, Note};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known only while the run is under way.
pub struct Live<'l> {
    /// Where the scheduler has each phase.
    pub schedule: &'l Schedule,
    /// The last note about each phase.
    pub notes: &'l BTreeMap<usize, Note>,
    /// Time since the run was started or resumed.
    pub clock: Duration,
}

/// A row for each phase, in the plan's order.
pub fn rows(record: &RunRecord, live: Option<&Live<'_>>, now: Timestamp) -> Vec<PhaseRow> {
    (0..record.len()).map(|at| row(record, at, live, now)).collect()
}

fn row(record: &RunRecord, at: usize, live: Option<&Live<'_>>, now: Timestamp) -> PhaseRow {
    let phase = record.phase(at);
    let node = phase.node;
    let mut row =
        PhaseRow::pending(phase.plan.shown.clone(), phase.plan.name.clone(), record.plan.max_attempts);
    row.state = state(node, at, live);
    row.elapsed = elapsed(node, now);
    row.commit = phase.commits.last().map(|(sha, subject)| (SafeText::new(short_hash(sha)), subject.clone()));
    row.attempt = node.attempt;
    row.total_attempts = node.total;
    row.of = row.of.max(node.attempt);
    row.retried = node.attempt > 1;
    row.error = node.last_error().map(|error| (error.fault.reason, fault_message(&error.fault)));
    row.usage = node.used;
    row.waits_for = waits_for(record, phase);
    row.flaky =
        u32::try_from(phase.gates.iter().map(|gate| gate.flaky.len()).sum::<usize>()).unwrap_or(u32::MAX);
    row.until = live.and_then(|live| match live.schedule.state(at) {
        NodeState::Waiting { not_before, .. } => {
            Some(not_before.saturating_sub(live.clock)).filter(|w| !w.is_zero())
        }
        _ => None,
    });
    row.wait = wait(record, node, now);
    if phase.plan.tasks > 0 && node.total > 0 {
        row.tasks = Some((u32::try_from(node.tasks_done.len()).unwrap_or(u32::MAX), phase.plan.tasks));
    }
    if let Some(Note::AwaitingGuard { provider, left }) = live.and_then(|live| live.notes.get(&at)) {
        row.until = Some(*left);
        row.note = Some(SafeText::new(format!("waits for {provider}")));
    }
    row
}

/// The rate limit that a node waits for.
pub(super) fn wait(record: &RunRecord, node: &NodeRecord, now: Timestamp) -> Option<LimitWaitRow> {
    let own = node.wait?;
    let whole = record.progress.waits.get(own.number)?;
    let left = own.left(now);
    Some(LimitWaitRow {
        provider: whole.provider.clone(),
        model: whole.model.clone(),
        window: whole.window,
        resets_at: whole.resets_at,
        until: now.after(left),
        left,
    })
}

fn state(phase: &NodeRecord, at: usize, live: Option<&Live<'_>>) -> PhaseState {
    match phase.status {
        NodeStatus::Complete if phase.skipped => PhaseState::Skipped,
        NodeStatus::Complete => PhaseState::Complete,
        NodeStatus::Failed => PhaseState::Failed,
        NodeStatus::Blocked => PhaseState::Blocked,
        NodeStatus::Running => match live.and_then(|live| live.notes.get(&at)) {
            Some(Note::Integrating) => PhaseState::Integrating,
            Some(Note::Checking(gate)) => PhaseState::Checking(SafeText::new(gate.clone())),
            _ => PhaseState::Running,
        },
        NodeStatus::Pending if phase.wait.is_some() => PhaseState::RetryWaiting,
        NodeStatus::Pending if phase.attempt > 0 && live.is_some() => PhaseState::RetryWaiting,
        NodeStatus::Pending => PhaseState::Pending,
    }
}

fn elapsed(phase: &NodeRecord, now: Timestamp) -> Option<Duration> {
    match phase.status {
        NodeStatus::Running => phase.attempt_at.map(|at| now.since(at)),
        _ if phase.total == 0 => None,
        _ => Some(Duration::from_millis(phase.worked_ms)),
    }
}

/// The first seven digits of a commit hash.
pub(super) fn short_hash(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}

fn waits_for(record: &RunRecord, phase: PhaseProgress<'_>) -> Vec<SafeText> {
    let shown = |id: &String| record.phase_of(id).map(|phase| phase.plan.shown.clone());
    match phase.node.status {
        NodeStatus::Blocked => blockers(record, &phase.plan.id).iter().filter_map(shown).collect(),
        NodeStatus::Pending if phase.node.attempt == 0 => {
            let open =
                |id: &&String| record.phase_of(id).is_some_and(|dep| dep.node.status != NodeStatus::Complete);
            phase.plan.depends_on.iter().filter(open).filter_map(shown).collect()
        }
        _ => Vec::new(),
    }
}

/// An estimate of how long the run still takes.
pub fn time_left(
    record: &RunRecord,
    levels: &[usize],
    planned: &dyn Fn(usize) -> Option<Duration>,
    jobs: usize,
    now: Timestamp,
) -> Option<Duration> {
    let ahead = |at: usize| {
        let phase = record.phase(at).node;
        Ahead {
            level: levels.get(at).copied().unwrap_or(0),
            planned: planned(at),
            course: match phase.status {
                NodeStatus::Complete if phase.skipped || phase.total == 0 => Course::Out,
                NodeStatus::Complete => Course::Done(Duration::from_millis(phase.worked_ms)),
                NodeStatus::Failed | NodeStatus::Blocked => Course::Out,
                NodeStatus::Running => Course::Running(elapsed(phase, now).unwrap_or_default()),
                NodeStatus::Pending => Course::Waiting,
            },
        }
    };
    let all: Vec<Ahead> = (0..record.len()).map(ahead).collect();
    remaining(&all, jobs)
}
