//! What is wrong with a JSON text.

use crate::SafeText;

/// How many characters of a name from a text are shown.
const NAME_CHARS_MAX: usize = 80;

/// What is wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// A comment without an end.
    #[error("a comment that is never closed")]
    OpenComment,
    /// Another token than the expected one.
    #[error("{expected} was expected")]
    Expected {
        /// The expected token.
        expected: &'static str,
    },
    /// The file ends too early.
    #[error("the file ends where {expected} was expected")]
    Ends {
        /// What was expected.
        expected: &'static str,
    },
    /// A string with an invalid escape.
    #[error("a string with an invalid escape")]
    Escape,
    /// A string with a line end or another control character.
    #[error("a string with a control character in it")]
    Control,
    /// Objects or arrays are nested too deeply.
    #[error("nested too deeply")]
    TooDeep,
    /// A value of the wrong type.
    #[error("`{}` is not {expected}", name(what))]
    Shape {
        /// The path of the value.
        what: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A key twice in one object.
    #[error("the key `{}` is set twice", name(key))]
    Twice {
        /// The key.
        key: String,
    },
}

fn name(text: &str) -> String {
    SafeText::new(text).line(NAME_CHARS_MAX)
}
