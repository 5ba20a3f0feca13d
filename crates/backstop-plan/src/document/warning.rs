//! Warnings about a plan: what is odd and does not keep it from being run.

use backstop_core::SafeText;

/// The most warnings that are kept; a last one says how many more there were.
pub const WARNINGS_MAX: usize = 1_000;
/// How much of a text from the plan is part of a warning.
const QUOTED_CHARS_MAX: usize = 60;

/// Something odd that does not keep the plan from being run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The line, counted from 1.
    pub line: usize,
    /// What is odd. Safe to print.
    pub text: String,
}

/// Warnings, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    list: Vec<Warning>,
    left_out: usize,
}

impl Warnings {
    /// Warns about a line, counted from 0. The text is ours; what is from the plan went through
    /// [`quoted`].
    pub(crate) fn add(&mut self, line: usize, text: impl FnOnce() -> String) {
        if self.list.len() < WARNINGS_MAX {
            self.list.push(Warning { line: line + 1, text: text() });
        } else {
            self.left_out += 1;
        }
    }

    /// All of them, in the order of lines.
    pub(crate) fn into_sorted(mut self) -> Vec<Warning> {
        self.list.sort_by_key(|warning| warning.line);
        if self.left_out > 0 {
            let line = self.list.last().map_or(1, |warning| warning.line);
            self.list.push(Warning { line, text: format!("and {} more warnings", self.left_out) });
        }
        self.list
    }
}

/// Text from a plan, escaped and cut for a warning.
pub(crate) fn quoted(text: &str) -> String {
    SafeText::new(text).line(QUOTED_CHARS_MAX)
}
