//! JSON from outside: how much of it is read, and what is wrong with it, by place.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;

/// The most bytes that a hook reads.
pub const INPUT_BYTES_MAX: usize = 8 << 20;

/// How many values of an input are kept: those of a report that anybody reads are far fewer. More
/// would take many times the memory of their text.
const VALUES_MAX: usize = 100_000;

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
    let read = bounded(bytes).or_else(|error| match repaired(bytes) {
        Some(text) => bounded(text.as_bytes()),
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

/// Reads JSON, and of its values no more than are kept: lists and objects end where there are too
/// many.
fn bounded(bytes: &[u8]) -> serde_json::Result<Value> {
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Bounded { left: &left }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads a value while more of them may be kept.
#[derive(Clone, Copy)]
struct Bounded<'l> {
    left: &'l Cell<usize>,
}

impl Bounded<'_> {
    /// Whether one more may be kept.
    fn take(self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while self.take() {
            match items.next_element_seed(self)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while self.take() {
            match entries.next_key::<String>()? {
                Some(name) => drop(fields.insert(name, entries.next_value_seed(self)?)),
                None => return Ok(Value::Object(fields)),
            }
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(fields))
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
