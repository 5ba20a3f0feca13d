//! Finds what people changed in state files since Backstop wrote them.
//!
//! Each file has the `seq` of the event that it was written after: only a difference from the
//! status at that time is an edit.

use super::ViewFolder;
use crate::record::RunRecord;
use backstop_core::{Event, SafeText};
use backstop_runtime::host::{Fold, NodeStatus};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The most that is read of a state file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A status that somebody changed in a state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The phase, by its place in the plan.
    pub phase: usize,
    /// The status that it was set to.
    pub status: NodeStatus,
    /// What was changed, in words.
    pub what: String,
}

/// A state file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the state file {} cannot be used: {what}", file.display())]
pub struct EditError {
    /// The file.
    pub file: PathBuf,
    /// The phase, as the plan writes it.
    pub phase: SafeText,
    /// The field that is wrong, where it is a single one.
    pub field: Option<&'static str>,
    /// What is wrong.
    pub what: String,
}

/// What somebody changed in the state files, and which cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    /// What somebody changed.
    pub edits: Vec<Edit>,
    /// Files that cannot be read.
    pub broken: Vec<EditError>,
}

/// What one state file says.
struct StateFile {
    phase: usize,
    seq: u64,
    status: NodeStatus,
}

impl Edits {
    /// Compares the state files with the events. `all_written`: the run ended by itself, when every
    /// file existed, so that a missing one was deleted by somebody.
    pub fn find(views: &ViewFolder, events: &[Event], record: &RunRecord, all_written: bool) -> Self {
        let mut edits = Self::default();
        let mut files = Vec::new();
        let folder_is_there = views.has_phases();
        for (at, id) in record.progress.order.iter().enumerate() {
            let file = views.phase_file(id);
            match read_state_file(views, &file, at, id) {
                Ok(Some(state)) => files.push(state),
                Ok(None) => {
                    let phase = record.phase(at).node;
                    let finished = phase.total > 0 && phase.status == NodeStatus::Complete;
                    if folder_is_there && all_written && finished {
                        let what = format!("{} was deleted", file.display());
                        edits.edits.push(Edit { phase: at, status: NodeStatus::Pending, what });
                    }
                }
                Err((field, what)) => edits.broken.push(EditError {
                    file,
                    phase: record.phase(at).plan.shown.clone(),
                    field,
                    what,
                }),
            }
        }
        edits.compare(files, events, record);
        edits.edits.sort_by_key(|edit| edit.phase);
        edits
    }

    fn compare(&mut self, mut files: Vec<StateFile>, events: &[Event], record: &RunRecord) {
        files.sort_by_key(|files| files.seq);
        let mut then = RunRecord::default();
        let mut events = events.iter().peekable();
        for state in files {
            while let Some(event) = events.next_if(|event| event.seq <= state.seq) {
                then.apply(event);
            }
            let id = &record.progress.order[state.phase];
            let Some(written) = then.phase_of(id) else { continue };
            if written.node.status == state.status {
                continue;
            }
            let what = format!(
                "the status of {} was set from {} to {} in its state file",
                written.plan.shown.line(40),
                written.node.status.name(),
                state.status.name()
            );
            self.edits.push(Edit { phase: state.phase, status: state.status, what });
        }
    }
}

type FieldError = (Option<&'static str>, String);

fn read_state_file(
    views: &ViewFolder,
    file: &Path,
    phase: usize,
    id: &str,
) -> Result<Option<StateFile>, FieldError> {
    let read = views.read(file, FILE_BYTES_MAX).map_err(|error| (None, error.to_string()))?;
    let Some(text) = read else { return Ok(None) };
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| (None, format!("it is no JSON: {error}")))?;
    let field = |name: &'static str| value.get(name).ok_or((Some(name), format!("`{name}` is missing")));
    let wrong = |name: &'static str, want: &str| (Some(name), format!("`{name}` must be {want}"));
    let named = field("phase_id")?.as_str().ok_or(wrong("phase_id", "text"))?;
    if named != id {
        return Err((Some("phase_id"), format!("`phase_id` must be `{id}`")));
    }
    let seq = field("seq")?.as_u64().ok_or(wrong("seq", "a number"))?;
    let status = field("status")?.as_str().and_then(NodeStatus::from_name);
    let status = status.ok_or(wrong("status", "one of pending, running, complete, failed, blocked"))?;
    for name in ["attempt", "max_attempts"] {
        field(name)?.as_u64().ok_or(wrong(name, "a number"))?;
    }
    Ok(Some(StateFile { phase, seq, status }))
}
