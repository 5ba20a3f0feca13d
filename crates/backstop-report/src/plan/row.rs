//! A phase of a run as a line of the live view, and as JSON.

use super::spans::{Paint, Spans};
use super::usage::usage_json;
use super::wait::LimitWaitRow;
use super::{ID_CHARS_MAX, NAME_CHARS_MAX, detail, shown};
use crate::notice::json_text;
use crate::{Style, duration, json, width};
use backstop_core::{Reason, SafeText, Usage};
use serde_json::{Value, json};
use std::time::Duration;

/// The widest columns of ids and of names.
const ID_COLUMNS_MAX: usize = 10;
const NAME_COLUMNS_MAX: usize = 40;
/// The narrowest columns of ids and of names.
const ID_COLUMNS_MIN: usize = 2;
const NAME_COLUMNS_MIN: usize = 14;
/// The widest time: `59m 59s`.
const TIME_COLUMNS: usize = 7;

/// The state of a phase.
#[derive(Debug, Clone, PartialEq)]
pub enum PhaseState {
    /// It has not begun.
    Pending,
    /// An attempt runs.
    Running,
    /// This gate checks the attempt.
    Checking(SafeText),
    /// Its work is being merged onto the run's tip.
    Integrating,
    /// It failed, and waits for its retry.
    RetryWaiting,
    /// It is complete.
    Complete,
    /// It failed, and is not retried.
    Failed,
    /// A phase that it depends on failed.
    Blocked,
    /// It is skipped.
    Skipped,
}

impl PhaseState {
    /// The name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            PhaseState::Pending => "pending",
            PhaseState::Running => "running",
            PhaseState::Checking(_) => "checking",
            PhaseState::Integrating => "integrating",
            PhaseState::RetryWaiting => "retry_waiting",
            PhaseState::Complete => "complete",
            PhaseState::Failed => "failed",
            PhaseState::Blocked => "blocked",
            PhaseState::Skipped => "skipped",
        }
    }

    /// Whether it is complete or skipped.
    pub fn finished(&self) -> bool {
        matches!(self, PhaseState::Complete | PhaseState::Skipped)
    }

    /// The mark at the start of the line: a sign, or a word on a terminal without Unicode.
    pub(super) fn mark(&self, style: Style) -> (Paint, &'static str) {
        let (paint, sign, word) = match self {
            PhaseState::Pending => (Paint::Faint, "○", "wait"),
            PhaseState::Running => (Paint::Strong, "⟳", "run"),
            PhaseState::Checking(_) => (Paint::Strong, "⟳", "check"),
            PhaseState::Integrating => (Paint::Strong, "⟳", "merge"),
            PhaseState::RetryWaiting => (Paint::Strong, "↻", "retry"),
            PhaseState::Complete => (Paint::Good, "✓", "ok"),
            PhaseState::Failed => (Paint::Bad, "✗", "FAIL"),
            PhaseState::Blocked => (Paint::Faint, "⊘", "block"),
            PhaseState::Skipped => (Paint::Faint, "-", "skip"),
        };
        (paint, if style.unicode { sign } else { word })
    }
}

/// A phase of a run, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseRow {
    /// Its id, such as `2A`.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// Its state.
    pub state: PhaseState,
    /// How long it took, or has been running.
    pub elapsed: Option<Duration>,
    /// Its commit: the short sha, and the subject.
    pub commit: Option<(SafeText, SafeText)>,
    /// The current or last attempt, counted from 1 since the run was last resumed; 0 if there was
    /// none.
    pub attempt: u32,
    /// How many attempts are allowed.
    pub of: u32,
    /// How many attempts were made in all, those before the run was resumed included.
    pub total_attempts: u32,
    /// The reason and the message of the last failure.
    pub error: Option<(Reason, SafeText)>,
    /// The phases that it waits for, or that block it.
    pub waits_for: Vec<SafeText>,
    /// How much longer it waits for something outside: a rate limit, a service that is down.
    pub until: Option<Duration>,
    /// How many tests failed and passed when they were run again unchanged.
    pub flaky: u32,
    /// Whether it was retried.
    pub retried: bool,
    /// How many of its tasks are done, and how many there are.
    pub tasks: Option<(u32, u32)>,
    /// What its attempts used, failed ones included, as far as its agent says so.
    pub usage: Option<Usage>,
    /// The rate limit that it waits for, if it waits for one.
    pub wait: Option<LimitWaitRow>,
    /// A further note.
    pub note: Option<SafeText>,
}

impl PhaseRow {
    /// A phase that has not begun.
    pub fn pending(id: SafeText, name: SafeText, of: u32) -> Self {
        Self {
            id,
            name,
            state: PhaseState::Pending,
            elapsed: None,
            commit: None,
            attempt: 0,
            of,
            total_attempts: 0,
            error: None,
            waits_for: Vec::new(),
            until: None,
            flaky: 0,
            retried: false,
            tasks: None,
            usage: None,
            wait: None,
            note: None,
        }
    }

    /// The phase as JSON, with the field names of the autobuild seed's state files.
    pub(super) fn json(&self) -> Value {
        let gate = match &self.state {
            PhaseState::Checking(gate) => Some(json_text(gate)),
            _ => None,
        };
        let error = self.error.as_ref().map(|(reason, message)| {
            json!({ "type": reason, "class": reason.class(), "message": json_text(message) })
        });
        json!({
            "phase_id": json_text(&self.id), "phase_name": json_text(&self.name),
            "status": self.state.name(), "gate": gate, "elapsed_ms": self.elapsed.map(json::ms),
            "commit": self.commit.as_ref().map(commit_json),
            "attempt": self.attempt, "max_attempts": self.of, "total_attempts": self.total_attempts,
            "retried": self.retried, "error": error,
            "waits_for": self.waits_for.iter().map(json_text).collect::<Vec<_>>(),
            "wait_ms": self.until.map(json::ms), "flaky": self.flaky,
            "tasks": self.tasks.map(|(completed, total)| json!({ "completed": completed, "total": total })),
            "usage": self.usage.map(usage_json),
            "wait": self.wait.as_ref().map(LimitWaitRow::json),
            "note": self.note.as_ref().map(json_text),
        })
    }
}

/// A commit as JSON.
pub(super) fn commit_json((sha, subject): &(SafeText, SafeText)) -> Value {
    json!({ "sha": json_text(sha), "subject": json_text(subject) })
}

/// The column widths that lines of phases share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widths {
    /// The width of ids.
    pub(super) id: usize,
    /// The width of names.
    pub(super) name: usize,
    /// The width of a whole line.
    pub(super) line: usize,
}

impl Widths {
    /// The widths for these phases, in lines of this width.
    pub(super) fn of(rows: &[PhaseRow], line: usize) -> Self {
        Self::titles(rows.iter().map(|row| (&row.id, &row.name)), line)
    }

    /// The widths for these ids and names.
    pub(super) fn titles<'t>(
        titles: impl Iterator<Item = (&'t SafeText, &'t SafeText)>,
        line: usize,
    ) -> Self {
        let (mut id_columns, mut name_columns) = (ID_COLUMNS_MIN, NAME_COLUMNS_MIN);
        for (id, name) in titles {
            id_columns = id_columns.max(width::width(&id.line(ID_CHARS_MAX)));
            name_columns = name_columns.max(width::width(&name.line(NAME_CHARS_MAX)));
        }
        let room = (line / 3).max(8);
        Self { id: id_columns.min(ID_COLUMNS_MAX), name: name_columns.min(NAME_COLUMNS_MAX).min(room), line }
    }

    /// `2A  Backend       `: id and name, padded to their columns.
    pub(super) fn title(&self, id: &SafeText, name: &SafeText, style: Style) -> Spans {
        let id = width::cut(&shown(id, ID_CHARS_MAX, style), self.id, style);
        let name = width::cut(&shown(name, NAME_CHARS_MAX, style), self.name, style);
        Spans::default().painted(Paint::Strong, id).pad(self.id + 2).plain(name).pad(self.id + 2 + self.name)
    }
}

/// The line of a phase: its mark, id, name, time and details, cut to the width.
pub(super) fn line(row: &PhaseRow, widths: Widths, style: Style) -> Spans {
    let mark_columns = if style.unicode { 1 } else { 5 };
    let (paint, mark) = row.state.mark(style);
    let time = row.elapsed.map(duration).unwrap_or_default();
    let detail = detail::detail(row, style);
    let mut line = Spans::default().painted(paint, mark).pad(mark_columns + 1);
    line = line.then(widths.title(&row.id, &row.name, style));
    if !time.is_empty() || !detail.is_empty() {
        line = line.plain(format!("  {time:>TIME_COLUMNS$}"));
    }
    if !detail.is_empty() {
        line = line.plain("   ").then(detail);
    }
    line.cut(widths.line, style)
}
