//! A line in parts, each with its style. It is measured and cut before colour codes are added.

use crate::{Style, width};

/// The style of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
}

/// The parts of a line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spans(Vec<(Paint, String)>);

impl Spans {
    /// A line of unstyled text.
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self::default().plain(text)
    }

    /// Appends unstyled text.
    pub(super) fn plain(self, text: impl Into<String>) -> Self {
        self.painted(Paint::Plain, text)
    }

    /// Appends styled text.
    pub(super) fn painted(mut self, paint: Paint, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((paint, text));
        }
        self
    }

    /// Appends another line.
    pub(super) fn then(mut self, other: Spans) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Pads with spaces to this many columns.
    pub(super) fn pad(self, columns: usize) -> Self {
        let missing = columns.saturating_sub(self.width());
        self.plain(" ".repeat(missing))
    }

    /// Joins lines with a separator.
    pub(super) fn join(parts: Vec<Spans>, between: &str) -> Self {
        let joined = parts.into_iter().reduce(|line, part| line.plain(between).then(part));
        joined.unwrap_or_default()
    }

    /// Whether there is no text.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The columns that it takes.
    pub(super) fn width(&self) -> usize {
        // Measured as one text: a variation selector at the start of a part widens the end of the
        // one before.
        width::width(&self.0.iter().map(|(_, text)| text.as_str()).collect::<String>())
    }

    /// Cut to this many columns.
    pub(super) fn cut(self, columns_max: usize, style: Style) -> Self {
        if self.width() <= columns_max {
            return self;
        }
        let mark = width::head(width::ellipsis(style), columns_max);
        let mut left = columns_max - width::width(mark);
        let mut kept = Self::default();
        for (paint, text) in self.0 {
            let head = width::head(&text, left);
            left -= width::width(head);
            let whole = head.len() == text.len();
            kept = kept.painted(paint, head);
            if !whole {
                break;
            }
        }
        kept.plain(mark)
    }

    /// The text for a terminal, with colour codes and without spaces at its end.
    pub(super) fn show(&self, style: Style) -> String {
        let mut out = String::new();
        for (paint, text) in &self.0 {
            out.push_str(&match paint {
                Paint::Plain => text.clone(),
                Paint::Strong => style.strong(text),
                Paint::Faint => style.faint(text),
                Paint::Good => style.good(text),
                Paint::Bad => style.bad(text),
            });
        }
        out.truncate(out.trim_end().len());
        out
    }
}
