//! `config.json`: what is known of the whole run, for tools that read files.

use super::SUMMARY_EVERY;
use crate::record::RunRecord;
use crate::view::ViewFolder;
use backstop_core::Event;
use backstop_runtime::host::{HostState, NodeStatus, Observer, ObserverError};
use serde_json::{Value, json};
use std::time::Duration;

/// Keeps `config.json` up to date.
pub(super) struct SummaryFile {
    views: ViewFolder,
    /// The command that resumes the run.
    resume: String,
    /// When the first event was recorded that is not in the file yet.
    changed_at: Option<Duration>,
}

impl SummaryFile {
    pub(super) fn new(views: ViewFolder, resume: String) -> Self {
        Self { views, resume, changed_at: None }
    }

    fn write(&mut self, record: &RunRecord) -> Result<(), ObserverError> {
        self.changed_at = None;
        let written = self.views.write_config(&summary(record, &self.resume));
        written.map_err(|error| ObserverError(format!("the run's summary cannot be written: {error}")))
    }
}

impl Observer<RunRecord> for SummaryFile {
    fn recorded(&mut self, _: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.changed_at.get_or_insert(state.now);
        Ok(())
    }

    fn due_in(&self, now: Duration) -> Option<Duration> {
        self.changed_at.map(|at| (at + SUMMARY_EVERY).saturating_sub(now))
    }

    fn tick(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        match self.due_in(state.now) {
            Some(Duration::ZERO) => self.write(state.record),
            _ => Ok(()),
        }
    }

    fn before_end(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write(state.record)
    }

    fn closed(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write(state.record)
    }
}

/// What `config.json` says.
fn summary(record: &RunRecord, resume: &str) -> Value {
    json!({
        "schema": 1,
        "version": 1,
        "run": record.progress.run,
        "plan_path": record.path(),
        "commit_mode": record.plan.commit,
        "isolation": record.plan.isolation,
        "started_at": record.progress.started_at,
        "resumed": record.progress.resumed,
        "tip": record.progress.tip,
        "resume": resume,
        "phases": {
            "total": record.len(),
            "completed": record.count(NodeStatus::Complete),
            "failed": record.count(NodeStatus::Failed),
            "blocked": record.count(NodeStatus::Blocked),
            "running": record.count(NodeStatus::Running),
            "pending": record.count(NodeStatus::Pending),
        },
    })
}
