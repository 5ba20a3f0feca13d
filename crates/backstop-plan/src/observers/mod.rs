//! What follows a plan's run into files: the plan's marks, the state files of phases, the summary,
//! the execution log.
//!
//! Each is an [`Observer`] of the host: it writes what was recorded, and what it cannot write holds
//! nothing up. Nothing here decides anything.

mod execution_log;
mod log_lines;
mod notices;
mod plan_marks;
mod state_files;
mod summary_file;

pub(crate) use notices::Notices;
pub use plan_marks::mark;

use crate::document::ReadOptions;
use crate::record::RunRecord;
use crate::view::ViewFolder;
use backstop_core::Event;
use backstop_runtime::host::{Observer, ObserverError, operation};
use execution_log::ExecutionLog;
use plan_marks::PlanMarks;
use state_files::StateFiles;
use std::path::PathBuf;
use std::time::Duration;
use summary_file::SummaryFile;

/// How often state files are written at most: nobody reads them faster.
const STATE_FILES_EVERY: Duration = Duration::from_millis(200);
/// How often the plan's file is written at most: people have it open in an editor.
const MARKS_EVERY: Duration = Duration::from_secs(1);
/// How often the summary of the run is written at most.
const SUMMARY_EVERY: Duration = Duration::from_secs(1);

/// The files that follow a plan's run.
pub struct PlanFiles {
    execution_log: ExecutionLog,
    state_files: StateFiles,
    marks: PlanMarks,
    summary: SummaryFile,
}

impl PlanFiles {
    /// Views go to `views`, marks into `plan_file`, which is read by `options`; `resume` is the
    /// command that resumes the run.
    pub fn new(views: &ViewFolder, plan_file: PathBuf, options: ReadOptions, resume: String) -> Self {
        Self {
            execution_log: ExecutionLog::new(views.clone()),
            state_files: StateFiles::new(views.clone()),
            marks: PlanMarks::new(plan_file, options),
            summary: SummaryFile::new(views.clone(), resume),
        }
    }

    /// The observers that write them, in the order in which they are to be told. Marks are only
    /// written where there is a plan's file.
    pub fn observers(&mut self, has_plan_file: bool) -> Vec<&mut dyn Observer<RunRecord>> {
        let mut all: Vec<&mut dyn Observer<RunRecord>> = vec![&mut self.execution_log, &mut self.state_files];
        if has_plan_file {
            all.push(&mut self.marks);
        }
        all.push(&mut self.summary);
        all
    }
}

/// The phases that these events are about, by their places in the plan.
fn phases_of(events: &[Event], record: &RunRecord) -> Vec<usize> {
    let number = |event: &Event| record.progress.number(operation(&event.kind)?.raw());
    events.iter().filter_map(number).collect()
}

fn unwritable(views: &ViewFolder, error: &dyn std::fmt::Display) -> ObserverError {
    ObserverError(format!("the views in {} cannot be written: {error}", views.path().display()))
}
