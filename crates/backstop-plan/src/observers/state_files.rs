//! The state files of phases, for people and for tools that read files.

use super::{STATE_FILES_EVERY, phases_of};
use crate::record::RunRecord;
use crate::view::ViewFolder;
use backstop_core::Event;
use backstop_runtime::host::{HostState, Observer, ObserverError};
use std::collections::BTreeSet;
use std::time::Duration;

/// Keeps the state files of phases up to date.
pub(super) struct StateFiles {
    views: ViewFolder,
    /// Phases whose files are not up to date, and since when.
    changed: BTreeSet<usize>,
    changed_at: Option<Duration>,
}

impl StateFiles {
    pub(super) fn new(views: ViewFolder) -> Self {
        Self { views, changed: BTreeSet::new(), changed_at: None }
    }

    fn write(&mut self, record: &RunRecord) -> Result<(), ObserverError> {
        self.changed_at = None;
        let phases: Vec<usize> = std::mem::take(&mut self.changed).into_iter().collect();
        self.views.write_phases(record, &phases).map_err(|error| super::unwritable(&self.views, &error))
    }
}

impl Observer<RunRecord> for StateFiles {
    fn recorded(&mut self, events: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.changed.extend(phases_of(events, state.record));
        self.changed_at.get_or_insert(state.now);
        Ok(())
    }

    fn due_in(&self, now: Duration) -> Option<Duration> {
        self.changed_at.map(|at| (at + STATE_FILES_EVERY).saturating_sub(now))
    }

    fn tick(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        match self.due_in(state.now) {
            Some(Duration::ZERO) => self.write(state.record),
            _ => Ok(()),
        }
    }

    /// Every phase has its file before the end is recorded: from then on, a missing file means that
    /// somebody deleted it.
    fn before_end(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        let record = state.record;
        let is_missing = |at: &usize| !self.views.phase_file(&record.progress.order[*at]).exists();
        let missing: Vec<usize> = (0..record.len()).filter(is_missing).collect();
        self.changed.extend(missing);
        self.write(record)
    }

    fn closed(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write(state.record)
    }
}
