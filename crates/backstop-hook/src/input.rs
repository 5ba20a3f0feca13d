//! JSON from outside: how much of it is read, and what is wrong with it, by place.

use serde_json::{Map, Value};

/// The most bytes that a hook reads.
pub const INPUT_BYTES_MAX: usize = 8 << 20;

/// Why an input cannot be understood. Each says where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// There is none.
    #[error("standard input is empty; expected a JSON object")]
    Empty,
    /// There is too much.
    #[error("standard input has more than {INPUT_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not JSON.
    #[error("standard input is not JSON: line {line}, column {column}: {why}")]
    NotJson {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// Something is missing.
    #[error("`{field}` is missing; expected {expected}")]
    Missing {
        /// Which, as a path.
        field: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// Something is of the wrong kind.
    #[error("`{field}` is {found}; expected {expected}")]
    Wrong {
        /// Which, as a path.
        field: String,
        /// What was expected.
        expected: &'static str,
        /// What was there.
        found: &'static str,
    },
}

impl InputError {
    /// Where it is: a path such as `error.message`, or the input itself.
    pub fn place(&self) -> String {
        match self {
            Self::Empty | Self::TooLarge => "standard input".to_owned(),
            Self::NotJson { line, column, .. } => format!("standard input:{line}:{column}"),
            Self::Missing { field, .. } => (*field).to_owned(),
            Self::Wrong { field, .. } => field.clone(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge => "cut `error.stack_trace` and `context.partial_result` to their ends",
            _ => {
                "for example: {\"task_data\":{\"task_id\":\"task-1\"},\"error\":{\"type\":\"TimeoutError\",\"message\":\"…\"}}; docs/hooks.md has it all"
            }
        }
    }
}

/// Reads one JSON object.
pub fn parse(bytes: &[u8]) -> Result<Map<String, Value>, InputError> {
    if bytes.len() > INPUT_BYTES_MAX {
        return Err(InputError::TooLarge);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(InputError::Empty);
    }
    let read = serde_json::from_slice(bytes).or_else(|error| match repaired(bytes) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    });
    let value: Value = read.map_err(|error| {
        let text = error.to_string();
        let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why).to_owned();
        InputError::NotJson { line: error.line(), column: error.column(), why }
    })?;
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(InputError::Wrong {
            field: "standard input".to_owned(),
            expected: "a JSON object",
            found: kind(&other),
        }),
    }
}

/// With a mark in place of what no text can hold: bytes that are no UTF-8, and halves of
/// characters, as they are left where somebody has cut a text in the middle of one. Nothing where
/// there is nothing of that.
fn repaired(bytes: &[u8]) -> Option<String> {
    let mut text = String::from_utf8_lossy(bytes);
    let unit = |at: usize, text: &str| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let next = unit(at + 6, &text);
        at += match unit(at, &text) {
            Some(0xd800..=0xdbff) if matches!(next, Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                text.to_mut().replace_range(at..at + 6, "\\ufffd");
                6
            }
            _ => 2,
        };
    }
    match text {
        std::borrow::Cow::Owned(text) => Some(text),
        std::borrow::Cow::Borrowed(_) => None,
    }
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A text of an object that may or may not be there; anything else there is passed over.
pub(crate) fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    fields.get(name).and_then(Value::as_str)
}

/// The text cut to so many bytes, its beginning kept.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// The text cut to so many bytes, its end kept.
pub(crate) fn cut_start(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_a_character_spoils_nothing() {
        for (given, want) in [
            (&br#"{"a":"x\ud83d"}"#[..], "x\u{fffd}"),
            (br#"{"a":"\udE00 \ud83d\n"}"#, "\u{fffd} \u{fffd}\n"),
            (br#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (br#"{"a":"\\ud83d \ud83d"}"#, "\\ud83d \u{fffd}"),
            (b"{\"a\":\"\xff\xe2\x82\"}", "\u{fffd}\u{fffd}"),
        ] {
            let given_text = String::from_utf8_lossy(given);
            assert_eq!(text(&parse(given).unwrap(), "a"), Some(want), "{given_text}");
        }
        for wrong in [&br#"{"a":"\ud83d""#[..], br#"{"a":"\ud83"#, br#"{"a":"\u"}"#, b"\xff", b"\\"] {
            assert!(matches!(parse(wrong), Err(InputError::NotJson { .. })));
        }
    }

    proptest! {
        #[test]
        fn repairing_never_panics_and_whole_texts_are_left_alone(bytes in any::<Vec<u8>>(), text in "[\\\\ud8cf0-9é\u{1f600}]{0,40}", whole in any::<String>()) {
            repaired(&bytes);
            repaired(text.as_bytes());
            prop_assert_eq!(repaired(serde_json::json!([whole]).to_string().as_bytes()), None);
        }
    }
}
