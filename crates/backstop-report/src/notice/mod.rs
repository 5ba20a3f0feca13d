//! A notice: what happened, to what, why, and what to do, independent of where it is shown.
//!
//! Each template makes one; there is one renderer each for terminals, Markdown, Slack and JSON. A
//! notice holds no escaped text: only the renderers escape.

mod json;
mod markdown;
mod slack;
mod terminal;
mod words;

use backstop_core::{Reason, SafeText};
use serde_json::Value as Json;
pub(crate) use slack::slack_words;
pub(crate) use words::{NAME_CHARS_MAX, Words, code_span, json_text};

/// How many items are listed below each other before "and n more".
pub(crate) const ITEMS_MAX: usize = 20;
/// How many names are listed on one line before "and n more".
pub(crate) const NAMES_MAX: usize = 8;

/// A text about a failure, in parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    kind: &'static str,
    title: String,
    heading: bool,
    reason: Option<Reason>,
    parts: Vec<Part>,
    next: Words,
}

/// The value of a label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// One line.
    Line(Words),
    /// A message of several lines.
    Message(SafeText),
    /// Names, separated by commas.
    Names(Vec<SafeText>),
    /// Names in brackets.
    Bracketed(Vec<SafeText>),
    /// Parameters of a tool call.
    Params(Vec<(SafeText, SafeText)>),
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: Value,
}

/// How the items of a list begin on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    /// `1) `
    Paren,
    /// `1. `
    Number,
    /// Two spaces.
    Indent,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// `Reason: test_failure (permanent)`.
    Reason,
    /// A label and its value.
    Field(Field),
    /// A label, and items below it.
    List(&'static str, &'static str, Marker, Vec<Words>),
    /// A line without a label.
    Line(&'static str, Words),
    /// The next step.
    Next,
    /// A blank line on a terminal.
    Gap,
    /// For JSON only.
    Data(&'static str, Json),
}

impl Notice {
    /// A notice without a heading on a terminal.
    pub(crate) fn new(kind: &'static str, title: impl Into<String>, reason: Option<Reason>) -> Self {
        let next = Words::default();
        Self { kind, title: title.into(), heading: false, reason, parts: Vec::new(), next }
    }

    /// A notice whose title is underlined on a terminal.
    pub(crate) fn headed(kind: &'static str, title: impl Into<String>, reason: Option<Reason>) -> Self {
        Self { heading: true, ..Self::new(kind, title, reason) }
    }

    /// The name of its template, such as `tool_not_found`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The reason that it is about; `None` for a fresh start that a person asked for.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The next step on one line, for a terminal.
    pub fn next(&self) -> String {
        self.next.terminal(crate::Style::PLAIN)
    }

    /// Adds a label and one line. A part with an empty key is left out of the JSON, where data says
    /// the same.
    pub(crate) fn field(self, key: &'static str, label: &'static str, words: impl Into<Words>) -> Self {
        self.value(key, label, Value::Line(words.into()))
    }

    pub(crate) fn value(mut self, key: &'static str, label: &'static str, value: Value) -> Self {
        self.parts.push(Part::Field(Field { key, label, value }));
        self
    }

    pub(crate) fn list(
        mut self,
        key: &'static str,
        label: &'static str,
        marker: Marker,
        items: Vec<Words>,
    ) -> Self {
        if !items.is_empty() {
            self.parts.push(Part::List(key, label, marker, items));
        }
        self
    }

    pub(crate) fn line(mut self, key: &'static str, words: impl Into<Words>) -> Self {
        self.parts.push(Part::Line(key, words.into()));
        self
    }

    pub(crate) fn data(mut self, key: &'static str, value: impl Into<Json>) -> Self {
        self.parts.push(Part::Data(key, value.into()));
        self
    }

    pub(crate) fn reason_line(mut self) -> Self {
        self.parts.push(Part::Reason);
        self
    }

    pub(crate) fn gap(mut self) -> Self {
        self.parts.push(Part::Gap);
        self
    }

    /// Sets the next step, and adds a line that shows it.
    pub(crate) fn next_line(mut self, next: impl Into<Words>) -> Self {
        self.next = next.into();
        self.parts.push(Part::Next);
        self
    }

    /// Sets the next step, which another part shows.
    pub(crate) fn next_shown(mut self, next: impl Into<Words>) -> Self {
        self.next = next.into();
        self
    }

    /// Applies `change` where the value is given.
    pub(crate) fn with<T>(self, given: Option<T>, change: impl FnOnce(Self, T) -> Self) -> Self {
        match given {
            Some(given) => change(self, given),
            None => self,
        }
    }
}

impl Field {
    pub(crate) fn new(key: &'static str, label: &'static str, words: impl Into<Words>) -> Self {
        Self { key, label, value: Value::Line(words.into()) }
    }
}

/// `name=value`, for the first few.
fn params(given: &[(SafeText, SafeText)]) -> Words {
    let pairs: Vec<SafeText> = given
        .iter()
        .map(|(name, value)| SafeText::new(format!("{}={}", name.line(40), value.line(NAME_CHARS_MAX - 50))))
        .collect();
    Words::names(&pairs, NAMES_MAX)
}

/// `test_failure (permanent)`.
fn reason_words(reason: Reason) -> String {
    format!("{reason} ({})", reason.class())
}

#[cfg(test)]
impl Notice {
    /// The next step in Markdown.
    pub(crate) fn next_markdown(&self) -> String {
        self.next.markdown()
    }

    /// The keys of its JSON, those that every notice has included.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let own = self.parts.iter().filter_map(|part| match part {
            Part::Field(field) => Some(field.key),
            Part::List(key, ..) | Part::Line(key, _) | Part::Data(key, _) => Some(*key),
            Part::Reason | Part::Next | Part::Gap => None,
        });
        own.filter(|key| !key.is_empty())
            .chain(["schema", "notice", "reason", "class", "retryable", "next"])
            .collect()
    }
}
