//! A sentence of Backstop's own words and text from outside, kept apart so that each renderer
//! escapes the latter.

use crate::Style;
use crate::list::more;
use backstop_core::SafeText;

/// How much of a value is shown.
pub(crate) const VALUE_CHARS_MAX: usize = 300;
/// How much of a name is shown.
pub(crate) const NAME_CHARS_MAX: usize = 120;
/// How much of a text goes into JSON.
const JSON_CHARS_MAX: usize = 4_000;

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Backstop's own words: shown as they are.
    Own(String),
    /// Text from outside: escaped, and a code span in Markdown.
    Outside(SafeText),
    /// A command to type: like text from outside, and in backticks on a terminal too.
    Code(SafeText),
}

/// Backstop's own words with text from outside among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Words(Vec<Piece>);

impl Words {
    /// Backstop's own words. Must not be given text from outside.
    pub(crate) fn own(text: impl Into<String>) -> Self {
        Self(vec![Piece::Own(text.into())])
    }

    /// Text from outside.
    pub(crate) fn outside(text: &SafeText) -> Self {
        Self::default().and_outside(text)
    }

    /// A command to type.
    pub(crate) fn code(command: &SafeText) -> Self {
        Self::default().and_code(command)
    }

    /// Appends Backstop's own words.
    pub(crate) fn and_own(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Own(text.into()));
        self
    }

    /// Appends text from outside, or `(nothing given)`.
    pub(crate) fn and_outside(mut self, text: &SafeText) -> Self {
        self.0.push(if text.raw().trim().is_empty() {
            Piece::Own("(nothing given)".into())
        } else {
            Piece::Outside(text.clone())
        });
        self
    }

    /// Appends a command to type.
    pub(crate) fn and_code(mut self, command: &SafeText) -> Self {
        if command.raw().trim().is_empty() {
            return self.and_outside(command);
        }
        self.0.push(Piece::Code(command.clone()));
        self
    }

    /// Appends other words.
    pub(crate) fn and_words(mut self, other: Words) -> Self {
        self.0.extend(other.0);
        self
    }

    /// At most `max` names, separated by commas, and how many more there are.
    pub(crate) fn names(list: &[SafeText], max: usize) -> Self {
        if list.is_empty() {
            return Self::own("none");
        }
        let mut words = Self::default();
        for (n, name) in list.iter().take(max).enumerate() {
            words = if n > 0 { words.and_own(", ") } else { words };
            words = words.and_outside(&SafeText::new(name.line(NAME_CHARS_MAX)));
        }
        words.and_own(more(list.len(), max))
    }

    /// The text for one line of a terminal.
    pub(crate) fn terminal(&self, style: Style) -> String {
        style.marks(
            &self.joined(
                |text| text.line(VALUE_CHARS_MAX),
                |text| format!("`{}`", text.line(VALUE_CHARS_MAX)),
            ),
        )
    }

    /// The text for Markdown, with text from outside in code spans.
    pub(crate) fn markdown(&self) -> String {
        let span = |text: &SafeText| code_span(text, VALUE_CHARS_MAX);
        self.joined(span, span)
    }

    /// The text for Slack, with an escape function each for own words and text from outside.
    pub(crate) fn slack(&self, own: fn(&str) -> String, outside: fn(&SafeText) -> String) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Own(text) => own(text),
            Piece::Outside(text) | Piece::Code(text) => outside(text),
        };
        self.0.iter().map(text).collect()
    }

    /// The text as a JSON value: text from outside is not escaped, and cut where it is very long.
    pub(crate) fn json(&self) -> String {
        self.joined(json_text, |text| format!("`{}`", json_text(text)))
    }

    fn joined(&self, outside: impl Fn(&SafeText) -> String, code: impl Fn(&SafeText) -> String) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Own(text) => text.clone(),
            Piece::Outside(text) => outside(text),
            Piece::Code(text) => code(text),
        };
        self.0.iter().map(text).collect()
    }
}

/// Text from outside as a code span of at most `chars_max` characters.
pub(crate) fn code_span(text: &SafeText, chars_max: usize) -> String {
    SafeText::new(text.line(chars_max)).code_span()
}

/// Text from outside as a JSON value: trimmed, and cut where it is very long.
pub(crate) fn json_text(text: &SafeText) -> String {
    crate::list::cut(text.raw().trim(), JSON_CHARS_MAX)
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        Self::own(text)
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self::own(text)
    }
}
