//! The marks in the plan's file: the status of phases, and the ticks of their tasks. Only Backstop
//! sets them; whatever somebody else writes into the file stays.

use super::{MARKS_EVERY, phases_of};
use crate::document::{Change, Edit, MarkIndex, PLAN_BYTES_MAX, PhaseId, ReadOptions, Status as Mark};
use crate::record::{PhaseProgress, RunRecord};
use crate::start::{recorded_options, story_files, texts};
use backstop_core::Event;
use backstop_files::{Durability, Folder};
use backstop_runtime::host::{HostState, NodeRecord, NodeStatus, Observer, ObserverError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keeps the marks in the plan's file up to date.
pub(super) struct PlanMarks {
    file: PathBuf,
    options: ReadOptions,
    /// What is to be changed, by phase, and since when.
    edits: BTreeMap<usize, Vec<Edit>>,
    changed_at: Option<Duration>,
    /// The places of the marks, as long as nobody else writes into the files.
    index: Option<MarkedFiles>,
}

impl PlanMarks {
    pub(super) fn new(file: PathBuf, options: ReadOptions) -> Self {
        Self { file, options, edits: BTreeMap::new(), changed_at: None, index: None }
    }

    fn note(&mut self, phases: Vec<usize>, state: &HostState<'_, RunRecord>) {
        for at in phases {
            self.edits.insert(at, edits(state.record.phase(at)));
            self.changed_at.get_or_insert(state.now);
        }
    }

    fn write(&mut self) -> Result<(), ObserverError> {
        self.changed_at = None;
        let edits: Vec<Edit> = self.edits.values().flatten().cloned().collect();
        if edits.is_empty() {
            return Ok(());
        }
        // What cannot be written now is written with the next change, or at the end.
        let written = write(&self.file, &self.options, &edits, self.index.take()).map(|index| {
            self.edits.clear();
            self.index = Some(index);
        });
        written.map_err(|error| ObserverError(format!("the plan's marks cannot be written: {error}")))
    }
}

impl Observer<RunRecord> for PlanMarks {
    /// All phases: a process that was killed may not have got to its marks.
    fn started(&mut self, _: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.note((0..state.record.len()).collect(), state);
        Ok(())
    }

    fn recorded(&mut self, events: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.note(phases_of(events, state.record), state);
        Ok(())
    }

    fn due_in(&self, now: Duration) -> Option<Duration> {
        self.changed_at.map(|at| (at + MARKS_EVERY).saturating_sub(now))
    }

    fn tick(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        match self.due_in(state.now) {
            Some(Duration::ZERO) => self.write(),
            _ => Ok(()),
        }
    }

    fn before_end(&mut self, _: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write()
    }

    fn closed(&mut self, _: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write()
    }
}

/// What is to be marked for a phase as it stands.
fn edits(phase: PhaseProgress<'_>) -> Vec<Edit> {
    let Ok(id) = phase.plan.id.parse::<PhaseId>() else { return Vec::new() };
    let mut edits = vec![Edit { phase: id.clone(), change: Change::Status(status(phase.node)) }];
    if phase.node.status == NodeStatus::Complete
        && let Some(delivery) = &phase.node.delivery
    {
        let done = delivery.tasks_done.iter().filter_map(|n| usize::try_from(n.checked_sub(1)?).ok());
        edits.push(Edit { phase: id, change: Change::Tick(done.collect()) });
    }
    edits
}

/// Marks phases in the plan's file as they are recorded. Tasks of a phase that is pending again are
/// open again.
pub fn mark(file: &Path, record: &RunRecord, phases: &[usize]) -> Result<(), String> {
    let mut edits = Vec::new();
    for &at in phases {
        let progress = record.phase(at);
        let Ok(phase) = progress.plan.id.parse::<PhaseId>() else { continue };
        edits.push(Edit { phase: phase.clone(), change: Change::Status(status(progress.node)) });
        if progress.node.status == NodeStatus::Pending {
            edits.push(Edit { phase, change: Change::UntickAll });
        }
    }
    write(file, &recorded_options(record), &edits, None).map(|_| ())
}

/// The files of a plan, and where the marks in them are.
struct MarkedFiles {
    files: Vec<PathBuf>,
    index: MarkIndex,
}

impl MarkedFiles {
    fn read(path: &Path, options: &ReadOptions) -> Result<Self, String> {
        let text = read(path)?;
        let others = story_files(path, &text);
        let stories = others.iter().map(|other| read(other)).collect::<Result<Vec<_>, _>>()?;
        let all = texts(path, &text, &others, &stories);
        let index = MarkIndex::read(&all, options).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { files: std::iter::once(path.to_owned()).chain(others).collect(), index })
    }

    /// Whether the plan's file and those that these edits are about are as they were left.
    fn is_current(&self, edits: &[Edit]) -> bool {
        let is_same = |file: usize| read(&self.files[file]).is_ok_and(|text| text == self.index.text(file));
        is_same(0) && self.index.files_of(edits).into_iter().filter(|file| *file > 0).all(is_same)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    // The path has no links in it; a phase may have put one in the file's place since.
    let folder = Folder::new(path.parent().unwrap_or(Path::new("/")));
    let text = folder.read(path, PLAN_BYTES_MAX as u64).map_err(|error| error.to_string())?;
    text.ok_or_else(|| format!("{} is gone", path.display()))
}

/// Makes these edits in the files of a plan. Those that do not change are not written. A plan whose
/// marks are known from the last time is read again only if somebody else has changed it since.
fn write(
    path: &Path,
    options: &ReadOptions,
    edits: &[Edit],
    known: Option<MarkedFiles>,
) -> Result<MarkedFiles, String> {
    let mut marked = match known.filter(|known| known.is_current(edits)) {
        Some(known) => known,
        None => MarkedFiles::read(path, options)?,
    };
    for at in marked.index.apply(edits) {
        let file = &marked.files[at];
        let folder = Folder::new(file.parent().unwrap_or(Path::new("/")));
        let text = marked.index.text(at);
        folder.replace(file, text, Durability::OnDisk).map_err(|error| error.to_string())?;
    }
    Ok(marked)
}

fn status(phase: &NodeRecord) -> Mark {
    match phase.status {
        NodeStatus::Complete if phase.skipped => Mark::Skipped,
        NodeStatus::Complete => Mark::Complete,
        NodeStatus::Running => Mark::InProgress,
        NodeStatus::Pending if phase.attempt > 0 && !phase.lost => Mark::InProgress,
        NodeStatus::Pending => Mark::NotStarted,
        NodeStatus::Failed => Mark::Failed,
        NodeStatus::Blocked => Mark::Blocked,
    }
}
