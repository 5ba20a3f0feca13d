//! The execution log of a run: a line for each event that is worth one, as it is recorded.

use super::log_lines::log_line;
use crate::record::RunRecord;
use crate::view::ViewFolder;
use backstop_core::Event;
use backstop_runtime::host::{HostState, Observer, ObserverError};

/// Appends to the execution log.
pub(super) struct ExecutionLog {
    views: ViewFolder,
    /// Lines that are not written yet.
    lines: String,
}

impl ExecutionLog {
    pub(super) fn new(views: ViewFolder) -> Self {
        Self { views, lines: String::new() }
    }

    fn write(&mut self) -> Result<(), ObserverError> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return Ok(());
        }
        self.views.log(&lines).map_err(|error| super::unwritable(&self.views, &error))
    }
}

impl Observer<RunRecord> for ExecutionLog {
    fn started(&mut self, opened: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.lines.extend(opened.iter().filter_map(|event| log_line(event, state.record)));
        self.write()
    }

    /// A line says which attempt it was: the record must not know of the next one yet.
    fn applied(&mut self, event: &Event, record: &RunRecord) {
        self.lines.extend(log_line(event, record));
    }

    fn recorded(&mut self, _: &[Event], _: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.write()
    }
}
