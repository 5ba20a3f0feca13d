//! A sentence made of our own words and of text from outside, kept apart until it is known where they go.

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
    /// Ours: shown as it is.
    Own(String),
    /// From outside: escaped, and a code span in Markdown.
    Outside(SafeText),
    /// A command to type: as from outside, and in backticks on a terminal too.
    Code(SafeText),
}

/// Our own words with text from outside among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Words(Vec<Piece>);

impl Words {
    /// Our own words. Never give this text from outside.
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

    /// Followed by our own words.
    pub(crate) fn and(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Own(text.into()));
        self
    }

    /// Followed by text from outside; where there is none, that is said.
    pub(crate) fn and_outside(mut self, text: &SafeText) -> Self {
        self.0.push(if text.raw().trim().is_empty() {
            Piece::Own("(nothing given)".into())
        } else {
            Piece::Outside(text.clone())
        });
        self
    }

    /// Followed by a command to type.
    pub(crate) fn and_code(mut self, command: &SafeText) -> Self {
        if command.raw().trim().is_empty() {
            return self.and_outside(command);
        }
        self.0.push(Piece::Code(command.clone()));
        self
    }

    /// Followed by other words.
    pub(crate) fn and_words(mut self, other: Words) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Names with commas between, at most `max` of them, and how many more there are.
    pub(crate) fn names(list: &[SafeText], max: usize) -> Self {
        if list.is_empty() {
            return Self::own("none");
        }
        let mut words = Self::default();
        for (n, name) in list.iter().take(max).enumerate() {
            words = if n > 0 { words.and(", ") } else { words };
            words = words.and_outside(&SafeText::new(name.line(NAME_CHARS_MAX)));
        }
        words.and(more(list.len(), max))
    }

    /// For one line of a terminal.
    pub(crate) fn terminal(&self, style: Style) -> String {
        style.marks(
            &self.joined(
                |text| text.line(VALUE_CHARS_MAX),
                |text| format!("`{}`", text.line(VALUE_CHARS_MAX)),
            ),
        )
    }

    /// For Markdown: text from outside is in code spans, where nothing has a meaning.
    pub(crate) fn markdown(&self) -> String {
        let span = |text: &SafeText| code_span(text, VALUE_CHARS_MAX);
        self.joined(span, span)
    }

    /// For Slack: our own words and text from outside, each by its own way of escaping.
    pub(crate) fn slack(&self, own: fn(&str) -> String, outside: fn(&SafeText) -> String) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Own(text) => own(text),
            Piece::Outside(text) | Piece::Code(text) => outside(text),
        };
        self.0.iter().map(text).collect()
    }

    /// As a value of JSON: text from outside as it came, cut where it is very long.
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

/// Text from outside as a value of JSON.
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
