//! A page in a box, as the autobuild seed draws it: a title, sections, and rows with dot leaders.
//!
//! Rows are cut or wrapped to the width. Commands are not: a long one overruns the border, so that
//! it can be copied whole.

use super::spans::{Paint, Spans};
use crate::Style;
use crate::width::{self, ellipsis};

/// The narrowest and the widest box.
const BOX_COLUMNS_MIN: usize = 40;
const BOX_COLUMNS_MAX: usize = 100;
/// The border and two spaces, at both sides.
const MARGIN_COLUMNS: usize = 6;
/// The longest word at the end of a dot leader: `complete`.
const STATUS_COLUMNS: usize = 8;
/// The fewest dots of a leader.
const DOTS_MIN: usize = 3;
/// A section with more entries than this is folded, and then shows so many at each end.
const ENTRIES_MAX: usize = 6;
const ENTRIES_AT_ENDS: usize = 2;
/// How many lines a path may take.
const PATH_LINES_MAX: usize = 8;

/// A box under construction.
pub(super) struct Boxed {
    out: String,
    columns: usize,
    style: Style,
}

impl Boxed {
    /// A box with this title, as wide as asked for within the bounds.
    pub(super) fn new(title: &str, paint: Paint, columns: usize, style: Style) -> Self {
        let columns = columns.clamp(BOX_COLUMNS_MIN, BOX_COLUMNS_MAX);
        let mut page = Self { out: String::new(), columns, style };
        page.border(["╔", "═", "╗"]);
        let title = width::cut(title, page.room(), style);
        let left = (page.room() - width::width(&title)) / 2;
        page.row(Spans::of(" ".repeat(left)).painted(paint, title));
        page.border(["╠", "═", "╣"]);
        page
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// The columns between the margins.
    fn room(&self) -> usize {
        self.columns - MARGIN_COLUMNS
    }

    fn border(&mut self, [left, line, right]: [&str; 3]) {
        let line = if self.style.unicode { line } else { "=" }.repeat(self.columns - 2);
        let (left, right) = if self.style.unicode { (left, right) } else { ("+", "+") };
        self.out.push_str(&format!("{left}{line}{right}\n"));
    }

    /// Adds a row. One that is too wide has no border at its end.
    fn row(&mut self, row: Spans) {
        let side = if self.style.unicode { "║" } else { "|" };
        let inside = Spans::of("  ").then(row);
        let line = match inside.width() <= self.columns - 2 {
            true => Spans::of(side).then(inside.pad(self.columns - 2)).plain(side),
            false => Spans::of(side).then(inside),
        };
        self.out.push_str(&format!("{}\n", line.show(self.style)));
    }

    /// The heading of a section, below a rule.
    pub(super) fn section(&mut self, heading: &str) {
        let rule = if self.style.unicode { "─" } else { "-" }.repeat(self.room());
        self.row(Spans::default().painted(Paint::Faint, rule.as_str()));
        self.row(Spans::default().painted(Paint::Strong, heading));
    }

    /// Adds a section with an entry for each item: left out if there are none, folded if there are
    /// many, so that the page fits one screen.
    pub(super) fn entries<T>(&mut self, heading: &str, list: &[T], show: impl Fn(&T, &mut Boxed)) {
        if list.is_empty() {
            return;
        }
        self.section(heading);
        let folds = list.len() > ENTRIES_MAX;
        let last = list.len().saturating_sub(ENTRIES_AT_ENDS);
        for (n, entry) in list.iter().enumerate() {
            if folds && n == ENTRIES_AT_ENDS {
                let left = list.len() - 2 * ENTRIES_AT_ENDS;
                self.line(format!("{} and {left} more", ellipsis(self.style)));
            }
            if !folds || n < ENTRIES_AT_ENDS || n >= last {
                show(entry, self);
            }
        }
    }

    /// Adds a row with a dot leader: `Phase 2A: Backend ........ FAILED`.
    pub(super) fn leader(&mut self, label: &str, paint: Paint, status: &str) {
        let to = self.room() - STATUS_COLUMNS - 1;
        let label = width::cut(label, to - DOTS_MIN - 1, self.style);
        let dots = to - width::width(&label) - 1;
        self.row(Spans::of(format!("{label} {} ", ".".repeat(dots))).painted(paint, status));
    }

    /// Adds one line, cut to fit.
    pub(super) fn line(&mut self, line: String) {
        self.row(Spans::of(width::cut(&line, self.room(), self.style)));
    }

    /// Adds a text in at most `lines_max` lines, indented below its label.
    pub(super) fn text(&mut self, label: &str, text: &str, lines_max: usize) {
        let lines = width::wrap(text, self.room() - width::width(label));
        self.hanging(label, &lines, lines_max);
    }

    /// Adds sentences with commands in backticks; commands are not broken.
    pub(super) fn sentences(&mut self, label: &str, text: &str) {
        let lines = width::wrap_commands(text, self.room() - width::width(label));
        self.hanging(label, &lines, usize::MAX);
    }

    /// Adds a path or a ref, broken where the line ends and not at spaces, so that nothing of it is
    /// lost.
    pub(super) fn path(&mut self, label: &str, path: &str) {
        let room = self.room() - width::width(label);
        let (mut rest, mut lines) = (path, Vec::new());
        while !rest.is_empty() {
            let part = width::head(rest, room);
            lines.push(part.to_owned());
            rest = &rest[part.len()..];
        }
        self.hanging(label, &lines, PATH_LINES_MAX);
    }

    /// Adds a command, which is never cut or broken.
    pub(super) fn command(&mut self, label: &str, command: &str) {
        self.row(Spans::of(label).painted(Paint::Strong, command));
    }

    fn hanging(&mut self, label: &str, lines: &[String], lines_max: usize) {
        let indent = " ".repeat(width::width(label));
        if lines.is_empty() {
            self.row(Spans::of(label.trim_end()));
        }
        for (n, line) in lines.iter().take(lines_max).enumerate() {
            let before = if n == 0 { label } else { &indent };
            self.row(Spans::of(format!("{before}{line}")));
        }
        if let Some(rest @ 1..) = lines.len().checked_sub(lines_max) {
            let lines = if rest == 1 { "line" } else { "lines" };
            self.line(format!("{indent}and {rest} more {lines}"));
        }
    }

    /// The whole box.
    pub(super) fn finish(mut self) -> String {
        self.border(["╚", "═", "╝"]);
        self.out
    }
}
