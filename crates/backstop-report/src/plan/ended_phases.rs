//! The phases of a run that ended, by their state, as rows of a box and as JSON.

use super::boxed::Boxed;
use super::row::commit_json;
use super::spans::Paint;
use super::{ID_CHARS_MAX, NAME_CHARS_MAX, command, ids, message, shown};
use crate::Style;
use crate::notice::json_text;
use backstop_core::{Reason, RunId, SafeText};
use serde_json::{Value, json};

/// How many lines the details of a failure may have.
const DETAILS_LINES_MAX: usize = 3;
/// How many kept refs are listed.
const KEPT_REFS_MAX: usize = 3;

/// A phase that is complete, or was skipped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompletedPhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// Its commits: short sha and subject.
    pub commits: Vec<(SafeText, SafeText)>,
    /// Whether it was skipped.
    pub skipped: bool,
}

/// A phase that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedPhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// How many attempts were made since the run was last resumed.
    pub attempts: u32,
    /// How many attempts are allowed.
    pub of: u32,
    /// How many attempts were made in all.
    pub total_attempts: u32,
    /// The reason for the failure.
    pub error: Reason,
    /// The error message.
    pub details: SafeText,
    /// Whether it was retried.
    pub retried: bool,
    /// The file with everything that it printed.
    pub log: SafeText,
}

/// A phase that cannot run because a phase that it depends on failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockedPhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// The failed phases that block it.
    pub by: Vec<SafeText>,
}

/// A phase that has not begun.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingPhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
}

/// Where the state of a halted run is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct PreservedState {
    /// The folder with the state files of its phases.
    pub folder: SafeText,
    /// How many phases have a file there.
    pub files: u64,
    /// The folder with its logs.
    pub logs: SafeText,
    /// The run.
    pub run: RunId,
    /// The refs that hold work that is not integrated.
    pub kept_refs: Vec<SafeText>,
}

/// `Phase 2A: Backend`.
pub(super) fn label(id: &SafeText, name: &SafeText, style: Style) -> String {
    let (id, name) = (shown(id, ID_CHARS_MAX, style), shown(name, NAME_CHARS_MAX, style));
    if name.is_empty() { format!("Phase {id}") } else { format!("Phase {id}: {name}") }
}

impl CompletedPhase {
    pub(super) fn show(&self, page: &mut Boxed) {
        let label = label(&self.id, &self.name, page.style());
        match self.skipped {
            true => page.leader(&label, Paint::Faint, "skipped"),
            false => page.leader(&label, Paint::Good, "complete"),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "phase_id": json_text(&self.id), "phase_name": json_text(&self.name),
            "status": if self.skipped { "skipped" } else { "complete" },
            "commits": self.commits.iter().map(commit_json).collect::<Vec<_>>(),
        })
    }
}

impl FailedPhase {
    pub(super) fn show(&self, page: &mut Boxed) {
        let style = page.style();
        page.leader(&label(&self.id, &self.name, style), Paint::Bad, "FAILED");
        let in_all = match self.total_attempts > self.attempts {
            true => format!(" ({} in all)", self.total_attempts),
            false => String::new(),
        };
        let retried = if self.retried || self.attempts > 1 { "" } else { ", not tried again" };
        page.line(format!("  Attempts: {}/{}{in_all}{retried}", self.attempts, self.of));
        page.line(format!("  Error: {} ({})", self.error, self.error.class()));
        page.text("  Details: ", &message(&self.details, style), DETAILS_LINES_MAX);
        if !self.log.raw().trim().is_empty() {
            page.path("  Log: ", &command(&self.log));
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "phase_id": json_text(&self.id), "phase_name": json_text(&self.name), "status": "failed",
            "attempts": self.attempts, "max_attempts": self.of, "total_attempts": self.total_attempts,
            "retried": self.retried, "log": self.log.raw(),
            "error": { "type": self.error, "class": self.error.class(), "details": json_text(&self.details) },
        })
    }
}

impl BlockedPhase {
    pub(super) fn show(&self, page: &mut Boxed) {
        let mut label = label(&self.id, &self.name, page.style());
        if !self.by.is_empty() {
            label.push_str(&format!(" (by {})", ids(&self.by, page.style())));
        }
        page.leader(&label, Paint::Faint, "blocked");
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "phase_id": json_text(&self.id), "phase_name": json_text(&self.name), "status": "blocked",
            "blocked_by": self.by.iter().map(json_text).collect::<Vec<_>>(),
        })
    }
}

impl PendingPhase {
    pub(super) fn show(&self, page: &mut Boxed) {
        page.leader(&label(&self.id, &self.name, page.style()), Paint::Faint, "pending");
    }

    pub(super) fn json(&self) -> Value {
        json!({ "phase_id": json_text(&self.id), "phase_name": json_text(&self.name), "status": "pending" })
    }
}

impl PreservedState {
    pub(super) fn show(&self, page: &mut Boxed) {
        page.path("Directory: ", &command(&self.folder));
        let files = crate::list::count(self.files, "phase", "phases");
        page.line(format!("Run: {}{}State files: {files}", self.run, page.style().dot()));
        for reference in self.kept_refs.iter().take(KEPT_REFS_MAX) {
            page.path("Kept: ", &command(reference));
        }
        if let Some(rest @ 1..) = self.kept_refs.len().checked_sub(KEPT_REFS_MAX) {
            page.line(format!("  and {rest} more"));
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "directory": self.folder.raw(), "files": self.files, "logs": self.logs.raw(), "run": self.run,
            "kept": self.kept_refs.iter().map(SafeText::raw).collect::<Vec<_>>(),
        })
    }
}
