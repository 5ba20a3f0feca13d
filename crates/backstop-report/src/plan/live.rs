//! The live view: all phases of a run on one screen, redrawn whenever something changes.

use super::row::{PhaseRow, PhaseState, Widths, line};
use super::spans::{Paint, Spans};
use crate::list::count;
use crate::width::ellipsis;
use crate::{Style, duration};
use std::time::Duration;

/// The widest bar, and the narrowest that is worth drawing.
const BAR_COLUMNS_MAX: usize = 24;
const BAR_COLUMNS_MIN: usize = 6;

/// The progress of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many phases are complete or skipped.
    pub done: u32,
    /// How many phases there are.
    pub total: u32,
    /// How long the run has been running.
    pub elapsed: Duration,
    /// An estimate of how long it still takes, where there is one.
    pub remaining: Option<Duration>,
}

impl Progress {
    /// The progress of these phases.
    pub fn of(rows: &[PhaseRow], elapsed: Duration, remaining: Option<Duration>) -> Self {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let done = rows.iter().filter(|row| row.state.finished()).count();
        Self { done: count(done), total: count(rows.len()), elapsed, remaining }
    }
}

/// The lines of the live view: one for each phase, and the progress bar last. At most `height`
/// lines of at most `width` columns.
///
/// With more phases than lines, finished ones are folded into one line, then those that wait.
/// Running and failed phases are shown before anything else.
pub fn live_view(rows: &[PhaseRow], bar: Progress, width: usize, height: usize, style: Style) -> Vec<String> {
    let Some(room) = height.checked_sub(1) else { return Vec::new() };
    let widths = Widths::of(rows, width);
    let mut lines: Vec<Spans> = if rows.len() <= room {
        rows.iter().map(|row| line(row, widths, style)).collect()
    } else {
        folded(rows, widths, room, style)
    };
    lines.push(bar_line(bar, width, style));
    lines.into_iter().map(|line| line.cut(width, style).show(style)).collect()
}

/// The phases in fewer lines than there are phases. Lines go to failed phases, to running ones, to
/// the fold of the finished ones and to waiting ones, in this order; lines that are left go to the
/// latest finished ones.
fn folded(rows: &[PhaseRow], widths: Widths, room: usize, style: Style) -> Vec<Spans> {
    let count = |group: Group| rows.iter().filter(|row| Group::of(&row.state) == group).count();
    let finished = count(Group::Finished);
    let failed = Fit::new(count(Group::Failed), room);
    let room = room - failed.lines();
    let running = Fit::new(count(Group::Running), room);
    let room = room - running.lines();
    let fold = finished.min(1).min(room);
    let waiting = Fit::new(count(Group::Waiting), room - fold);
    let spare = room - fold - waiting.lines();
    let by_name = if finished <= spare + fold { finished } else { spare };

    let mut lines = Vec::new();
    if finished > by_name && fold > 0 {
        lines.push(finished_line(rows, finished - by_name, style));
    }
    let mut seen = [0usize; 4];
    for row in rows {
        let group = Group::of(&row.state);
        let shown = match group {
            Group::Finished => finished - by_name..finished,
            Group::Waiting => 0..waiting.shown,
            Group::Running => 0..running.shown,
            Group::Failed => 0..failed.shown,
        };
        let nth = &mut seen[group as usize];
        if shown.contains(nth) {
            lines.push(line(row, widths, style));
        }
        *nth += 1;
    }
    for (fit, what) in [(failed, "that failed"), (running, "that run"), (waiting, "that wait")] {
        if fit.folded > 0 {
            let more = format!("{} and {} more {what}", ellipsis(style), fit.folded);
            lines.push(Spans::default().painted(Paint::Faint, more));
        }
    }
    lines
}

/// Phases that are shown or folded together.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    Finished,
    Waiting,
    Running,
    Failed,
}

impl Group {
    fn of(state: &PhaseState) -> Self {
        match state {
            PhaseState::Complete | PhaseState::Skipped => Group::Finished,
            PhaseState::Pending | PhaseState::Blocked => Group::Waiting,
            PhaseState::Failed => Group::Failed,
            PhaseState::Running
            | PhaseState::Checking(_)
            | PhaseState::Integrating
            | PhaseState::RetryWaiting => Group::Running,
        }
    }
}

/// How many phases of a group are shown, and how many are folded into one more line.
#[derive(Clone, Copy)]
struct Fit {
    shown: usize,
    folded: usize,
}

impl Fit {
    fn new(count: usize, room: usize) -> Self {
        match room {
            room if count <= room => Self { shown: count, folded: 0 },
            0 => Self { shown: 0, folded: 0 },
            room => Self { shown: room - 1, folded: count - (room - 1) },
        }
    }

    fn lines(self) -> usize {
        self.shown + usize::from(self.folded > 0)
    }
}

/// `✓ 12 phases complete, 2 skipped`, for the first `folded` of the finished ones.
fn finished_line(rows: &[PhaseRow], folded: usize, style: Style) -> Spans {
    let skipped = rows
        .iter()
        .filter(|row| row.state.finished())
        .take(folded)
        .filter(|row| row.state == PhaseState::Skipped)
        .count();
    let many = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let (paint, mark) = PhaseState::Complete.mark(style);
    let gap = if style.unicode { " " } else { "    " };
    let complete = count(many(folded - skipped), "phase", "phases");
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    Spans::default().painted(paint, mark).plain(format!("{gap}{complete} complete{skipped}"))
}

/// `━━━━━━────── 3 of 8 · 12m 04s · about 20m 00s left`.
fn bar_line(bar: Progress, width: usize, style: Style) -> Spans {
    let mut parts = vec![format!("{} of {}", bar.done, bar.total), duration(bar.elapsed)];
    parts.extend(bar.remaining.map(|left| format!("about {} left", duration(left))));
    let words = Spans::of(parts.join(style.dot()));
    let ends = if style.unicode { 0 } else { 2 };
    let room = width.saturating_sub(words.width() + 1 + ends).min(BAR_COLUMNS_MAX);
    if room < BAR_COLUMNS_MIN {
        return words;
    }
    let share = u64::from(bar.done.min(bar.total)) * room as u64 / u64::from(bar.total.max(1));
    let full = usize::try_from(share).unwrap_or(room);
    let (open, on, off, close) = if style.unicode { ("", "━", "─", "") } else { ("[", "#", "-", "]") };
    Spans::of(open)
        .painted(Paint::Good, on.repeat(full))
        .painted(Paint::Faint, off.repeat(room - full))
        .plain(format!("{close} "))
        .then(words)
}
