//! What a campaign teaches the next one: each task that failed at least once, what was tried, and
//! what cured it. Pure.

use crate::prompts::delivered;
use crate::record::CampaignRecord;
use crate::task::Task;
use backstop_core::{Event, EventKind, Fault, RunId, SafeText, Timestamp, signature};
use backstop_store::Lesson;
use std::collections::BTreeMap;

/// The lessons of a campaign that is over. A task that was opened again has forgotten its failures;
/// the events have not.
pub fn lessons(record: &CampaignRecord, events: &[Event], run: RunId, now: Timestamp) -> Vec<Lesson> {
    let mut failed: BTreeMap<&str, &Fault> = BTreeMap::new();
    for event in events {
        if let EventKind::ErrorClassified { operation, fault, .. } = &event.kind {
            failed.insert(operation.raw(), fault);
        }
    }
    let lesson = |task: &Task| {
        let (fault, phase) = (failed.get(task.seq.as_str())?, record.run.phase_of(&task.seq)?);
        let cause = fault.cause.as_ref();
        let cause = cause.map_or_else(|| fault.reason.code().to_owned(), |cause| cause.line(300));
        let is_cured = record.status(&task.seq) == "complete";
        Some(Lesson {
            run,
            task: SafeText::new(task.workspace_id()),
            signature: SafeText::new(signature(&cause)),
            reason: fault.reason,
            files: task.delta.clone(),
            tried: SafeText::new(format!("{} attempts; last failure: {cause}", phase.node.total)),
            cure: is_cured.then(|| SafeText::new(delivered(record, &task.seq))),
            attempts: phase.node.total,
            cost_ms: phase.node.worked_ms,
            at: now,
        })
    };
    record.plan.tasks.iter().filter_map(lesson).collect()
}
