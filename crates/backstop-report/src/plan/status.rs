//! The status of a plan's run, as another process sees it.

use super::live::Progress;
use super::row::{PhaseRow, Widths, line};
use super::spans::{Paint, Spans};
use super::usage::{usage_json, usage_words};
use super::wait::WaitSum;
use super::{NAME_CHARS_MAX, command, ids, shown};
use crate::json::ms;
use crate::notice::json_text;
use crate::width::ellipsis;
use crate::{JSON_SCHEMA, Style, date_time, duration};
use backstop_core::{Reason, RunId, SafeText, Timestamp, Usage};
use serde_json::{Value, json};
use std::time::Duration;

/// How many phases are listed for people. JSON has them all.
const ROWS_MAX: usize = 200;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It runs, in this process.
    Running {
        /// The process.
        pid: u32,
    },
    /// It halted, and can be resumed.
    Halted {
        /// The reason for the halt.
        reason: Reason,
    },
    /// It is complete.
    Complete,
    /// No process runs it and no end is recorded: Backstop was killed while it ran.
    Interrupted,
}

impl RunState {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running { .. } => "running",
            RunState::Halted { .. } => "halted",
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
        }
    }

    fn words(self) -> Spans {
        let spans = Spans::default();
        match self {
            RunState::Running { pid } => spans.painted(Paint::Strong, format!("running by process {pid}")),
            RunState::Halted { reason } => {
                spans.painted(Paint::Bad, "halted").plain(format!(": {reason} ({})", reason.class()))
            }
            RunState::Complete => spans.painted(Paint::Good, "complete"),
            RunState::Interrupted => spans.painted(Paint::Bad, "interrupted"),
        }
    }
}

/// The status of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStatus {
    /// The plan.
    pub plan: SafeText,
    /// The run.
    pub run: RunId,
    /// Its state.
    pub state: RunState,
    /// Its phases, in the plan's order.
    pub rows: Vec<PhaseRow>,
    /// Its progress.
    pub progress: Progress,
    /// What its agents used in all, as far as they say so.
    pub usage: Option<Usage>,
    /// How often and how long it waited for rate limits.
    pub waits: WaitSum,
    /// When it is to start, and how far away that is, while it has not.
    pub starts_at: Option<(Timestamp, Duration)>,
    /// Phases that were changed in the plan after they ran.
    pub changed: Vec<SafeText>,
    /// The command to type next, where there is one.
    pub next: Option<SafeText>,
}

/// The status for a terminal: a heading, a line for each phase, and the next command. Lines are cut
/// to the width; the command is not.
pub fn plan_status(given: &PlanStatus, width: usize, style: Style) -> String {
    let (dot, progress) = (style.dot(), given.progress);
    let plan = shown(&given.plan, NAME_CHARS_MAX, style);
    let used = given.usage.map(usage_words).filter(|words| !words.is_empty());
    let mut lines = vec![
        Spans::default().painted(Paint::Strong, given.run.to_string()).plain(format!("{dot}{plan}")),
        Spans::of("  ").then(given.state.words()).plain(format!(
            "{dot}{} of {}{dot}{}{}",
            progress.done,
            progress.total,
            duration(progress.elapsed),
            used.map(|words| format!("{dot}{words}")).unwrap_or_default()
        )),
    ];
    let to_run = progress.total.saturating_sub(progress.done);
    if given.state == RunState::Interrupted && to_run > 0 {
        let phases = crate::list::count(u64::from(to_run), "phase", "phases");
        lines.push(Spans::of(format!("  {phases} to run")));
    }
    if let Some((at, left)) = given.starts_at {
        lines.push(Spans::of(format!("  starts {} (in {})", date_time(at), duration(left))));
    }
    lines.extend(given.waits.words().map(|words| Spans::of(format!("  {words}"))));
    if let Some(left) = progress.remaining.filter(|_| matches!(given.state, RunState::Running { .. })) {
        lines.push(Spans::of(format!("  about {} left", duration(left))));
    }
    let widths = Widths::of(&given.rows, width.saturating_sub(2));
    let rows = given.rows.iter().take(ROWS_MAX);
    lines.extend(rows.map(|row| Spans::of("  ").then(line(row, widths, style))));
    if let Some(rest @ 1..) = given.rows.len().checked_sub(ROWS_MAX) {
        lines.push(Spans::of(format!("  {} and {rest} more", ellipsis(style))));
    }
    if !given.changed.is_empty() {
        lines.push(Spans::of(format!("changed in the plan since they ran: {}", ids(&given.changed, style))));
    }
    let mut out: String =
        lines.into_iter().map(|line| format!("{}\n", line.cut(width, style).show(style))).collect();
    if let Some(next) = given.next.as_ref().map(command).filter(|next| !next.is_empty()) {
        out.push_str(&format!("next: {}\n", style.strong(&next)));
    }
    out
}

/// The status as JSON, with every phase.
pub fn plan_status_json(given: &PlanStatus) -> Value {
    let (pid, reason) = match given.state {
        RunState::Running { pid } => (Some(pid), None),
        RunState::Halted { reason } => (None, Some(reason)),
        RunState::Complete | RunState::Interrupted => (None, None),
    };
    json!({
        "schema": JSON_SCHEMA,
        "plan": given.plan.raw(),
        "run": given.run,
        "state": given.state.name(),
        "pid": pid,
        "reason": reason,
        "class": reason.map(Reason::class),
        "done": given.progress.done,
        "total": given.progress.total,
        "elapsed_ms": ms(given.progress.elapsed),
        "remaining_ms": given.progress.remaining.map(ms),
        "usage": given.usage.map(usage_json),
        "waits": given.waits.json(),
        "starts_at": given.starts_at.map(|(at, _)| at),
        "phases": given.rows.iter().map(PhaseRow::json).collect::<Vec<_>>(),
        "changed": given.changed.iter().map(json_text).collect::<Vec<_>>(),
        "next": given.next.as_ref().map(SafeText::raw),
    })
}
