//! The plan's file: only Backstop ticks tasks and status cells, whole files at a time and not at every change.

use super::COALESCE;
use crate::document::{Change, Edit, PLAN_BYTES_MAX, PhaseId, Plan, Status as Mark, updated};
use crate::record::{PhaseProgress, RunRecord, Status};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is to be marked, and since when.
pub(super) struct Upkeep {
    file: PathBuf,
    edits: BTreeMap<usize, Vec<Edit>>,
    since: Option<Duration>,
}

impl Upkeep {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, edits: BTreeMap::new(), since: None }
    }

    /// A phase stands elsewhere now.
    pub(super) fn note(&mut self, plan: &Plan, node: usize, progress: &PhaseProgress, now: Duration) {
        let Some(phase) = plan.phases.get(node) else { return };
        let mut edits = vec![Edit { phase: phase.id.clone(), change: Change::Status(status(progress)) }];
        if progress.status == Status::Complete
            && let Some(delivery) = &progress.delivery
        {
            let done = delivery.tasks_done.iter().filter_map(|n| usize::try_from(n.checked_sub(1)?).ok());
            edits.push(Edit { phase: phase.id.clone(), change: Change::Tick(done.collect()) });
        }
        self.edits.insert(node, edits);
        self.since.get_or_insert(now);
    }

    /// How long until the file is to be written, if it is.
    pub(super) fn is_due_in(&self, now: Duration) -> Option<Duration> {
        self.since.map(|since| (since + COALESCE).saturating_sub(now))
    }

    /// Writes what has changed. Whatever somebody else wrote into the file meanwhile stays.
    pub(super) fn write(&mut self) -> Result<(), String> {
        self.since = None;
        let edits: Vec<Edit> = self.edits.values().flatten().cloned().collect();
        if edits.is_empty() {
            return Ok(());
        }
        // What cannot be written now is written with the next change, or at the end.
        write(&self.file, &edits).inspect(|()| self.edits.clear())
    }
}

/// Marks phases in the plan's file as they are recorded. Tasks of a phase that is pending again are open again.
pub fn mark(file: &Path, record: &RunRecord, phases: &[usize]) -> Result<(), String> {
    let mut edits = Vec::new();
    for &at in phases {
        let progress = record.phase(at);
        let Ok(phase) = progress.plan.id.parse::<PhaseId>() else { continue };
        edits.push(Edit { phase: phase.clone(), change: Change::Status(status(progress)) });
        if progress.status == Status::Pending {
            edits.push(Edit { phase, change: Change::UntickAll });
        }
    }
    write(file, &edits)
}

fn write(path: &Path, edits: &[Edit]) -> Result<(), String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PLAN_BYTES_MAX as u64 + 1).read_to_end(&mut text));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    let new = updated(&text, edits).map_err(|error| format!("{}: {error}", path.display()))?;
    if new == text {
        return Ok(());
    }
    backstop_store::write_atomic(path, &new).map_err(|error| format!("{}: {error}", path.display()))
}

fn status(progress: &PhaseProgress) -> Mark {
    match progress.status {
        Status::Complete if progress.skipped => Mark::Skipped,
        Status::Complete => Mark::Complete,
        Status::Running => Mark::InProgress,
        Status::Pending if progress.attempt > 0 => Mark::InProgress,
        Status::Pending => Mark::NotStarted,
        Status::Failed => Mark::Failed,
        Status::Blocked => Mark::Blocked,
    }
}
