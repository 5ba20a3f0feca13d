//! All that is recorded of one phase.

use super::rows::{rows, short_hash};
use crate::record::fault_message;
use crate::runs::{FoundRun, resume_command};
use backstop_core::{Reason, SafeText, Timestamp};
use backstop_report::plan::{PhaseDetails, PhaseState};
use std::path::Path;
use std::time::Duration;

/// The details of a phase, by its place in the plan. `shown` shortens a path for people.
pub fn details(
    found: &FoundRun,
    at: usize,
    shown: &dyn Fn(&Path) -> String,
    now: Timestamp,
) -> Option<PhaseDetails> {
    let record = &found.record;
    let row = rows(record, None, now).into_iter().nth(at)?;
    let phase = record.phase(at);
    let node = phase.node;
    let shown_id =
        |id: &String| record.phase_of(id).map_or_else(|| SafeText::new(id), |phase| phase.plan.shown.clone());
    let id = phase.plan.shown.line(40);
    let mut next = Vec::new();
    if node.total > 0 {
        next.push(format!("backstop plan diff {id}"));
        next.push(format!("backstop plan logs {id}"));
    }
    if matches!(row.state, PhaseState::Failed | PhaseState::Pending) && node.total > 0 {
        next.push(resume_command(record));
    }
    Some(PhaseDetails {
        id: row.id,
        name: row.name,
        state: row.state,
        attempts: node.total,
        elapsed: row.elapsed,
        tasks: row.tasks,
        depends_on: phase.plan.depends_on.iter().map(shown_id).collect(),
        failures: node
            .errors
            .iter()
            .map(|error| (error.total, error.fault.reason, fault_message(&error.fault)))
            .chain(node.lost.then(|| {
                let left = "what it left is kept, and handed to the next attempt";
                (node.total, Reason::Interrupted, SafeText::from(left))
            }))
            .collect(),
        gates: phase
            .gates
            .iter()
            .map(|gate| (gate.name(), gate.passed, Duration::from_millis(gate.duration_ms)))
            .collect(),
        commits: phase
            .commits
            .iter()
            .map(|(sha, subject)| (SafeText::new(short_hash(sha)), subject.clone()))
            .collect(),
        usage: node.used,
        log: (node.total > 0)
            .then(|| SafeText::new(shown(&found.views.attempt_log(&phase.plan.id, node.total)))),
        next: next.into_iter().map(SafeText::new).collect(),
    })
}
