//! Waits in the body of an answer, or in an object that a program printed on a line.

use super::clock::Clock;
use super::hints::Hints;
use super::{longer, prose};
use serde_json::Value;

/// How deep a body is searched.
const DEPTH_MAX: usize = 12;
/// How many fields of an object and how many items of a list are looked at.
const FIELDS_MAX: usize = 256;
/// Fields that hold sentences.
const SENTENCES: &[&str] = &[
    "message",
    "error",
    "detail",
    "details",
    "text",
    "result",
    "msg",
    "description",
    "reason",
    "title",
    "body",
    "content",
    "error_description",
    "errormessage",
];

impl Hints {
    pub(super) fn read_body(&mut self, value: &Value, clock: &Clock, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(fields) => {
                // An event that says that the request was served speaks of no wait.
                let served = fields.get("status").and_then(Value::as_str);
                if served.is_some_and(|status| status.starts_with("allowed")) {
                    return;
                }
                for (key, field) in fields.iter().take(FIELDS_MAX) {
                    self.read_body_field(key, field, clock, depth);
                }
                if let (Some(left), Some(reset)) = (fields.get("remaining"), fields.get("reset")) {
                    self.read_field("ratelimit-remaining", &plain(left), clock);
                    self.read_field("ratelimit-reset", &plain(reset), clock);
                }
            }
            Value::Array(items) => {
                items.iter().take(FIELDS_MAX).for_each(|item| self.read_body(item, clock, depth + 1));
            }
            Value::String(text) => self.read_sentence(text, clock, depth),
            _ => {}
        }
    }

    fn read_body_field(&mut self, key: &str, field: &Value, clock: &Clock, depth: usize) {
        match field {
            Value::String(_) | Value::Number(_) if self.read_field(key, &plain(field), clock) => {}
            Value::String(text) if SENTENCES.contains(&key.to_ascii_lowercase().as_str()) => {
                self.read_sentence(text, clock, depth);
            }
            // `{"retryDelay": {"seconds": 23}}`
            Value::Object(inner) if key.eq_ignore_ascii_case("retryDelay") || key == "retry_delay" => {
                if let Some(seconds) = inner.get("seconds") {
                    self.read_field("retry-after", &plain(seconds), clock);
                }
            }
            Value::Object(_) | Value::Array(_) => self.read_body(field, clock, depth + 1),
            _ => {}
        }
    }

    /// A sentence, or another answer inside it.
    fn read_sentence(&mut self, text: &str, clock: &Clock, depth: usize) {
        if let Some((inner, _)) = object_in(text) {
            self.read_body(&inner, clock, depth + 1);
        }
        self.in_words = longer(self.in_words, prose::read(text, false, clock));
    }
}

/// The first object or list in a text, if it is whole, and what follows it.
pub(super) fn object_in(text: &str) -> Option<(Value, &str)> {
    let from = text.find(['{', '['])?;
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let rest = text.get(from + values.byte_offset()..).unwrap_or_default();
    match &value {
        Value::Object(_) => Some((value, rest)),
        // `[API Error: {"error": …}]` begins with a bracket that is no list.
        Value::Array(items) if items.iter().any(Value::is_object) => Some((value, rest)),
        _ => None,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
