//! A notice as JSON: the seeds' labels as keys, text from outside not escaped.

use super::{Field, Notice, Part, Value, Words, json_text};
use crate::JSON_SCHEMA;
use backstop_core::{Reason, SafeText};
use serde_json::{Map, Value as Json, json};

/// How many items of a list go into JSON.
const JSON_ITEMS_MAX: usize = 500;

impl Notice {
    /// The notice as JSON. `notice` names the template; `reason`, `class`, `retryable` and `next`
    /// are always there.
    pub fn json(&self) -> Json {
        let mut out = Map::new();
        for part in &self.parts {
            let (key, value) = match part {
                Part::Reason | Part::Next | Part::Gap => continue,
                Part::Field(field) => (field.key, field_json(field)),
                Part::List(key, _, _, items) => {
                    (*key, items.iter().take(JSON_ITEMS_MAX).map(Words::json).collect())
                }
                Part::Line(key, words) => (*key, json!(words.json())),
                Part::Data(key, value) => (*key, value.clone()),
            };
            if !key.is_empty() {
                out.insert(key.to_owned(), value);
            }
        }
        out.insert("schema".to_owned(), json!(JSON_SCHEMA));
        out.insert("notice".to_owned(), json!(self.kind));
        out.insert("reason".to_owned(), json!(self.reason));
        out.insert("class".to_owned(), json!(self.reason.map(Reason::class)));
        out.insert("retryable".to_owned(), json!(self.reason.is_some_and(Reason::retryable)));
        out.insert("next".to_owned(), json!(self.next.json()));
        Json::Object(out)
    }
}

fn field_json(field: &Field) -> Json {
    match &field.value {
        Value::Line(words) => json!(words.json()),
        Value::Message(text) => json!(json_text(text)),
        Value::Names(names) | Value::Bracketed(names) => names_json(names),
        Value::Params(given) if given.is_empty() => json!({}),
        Value::Params(given) => {
            let pairs = given
                .iter()
                .take(JSON_ITEMS_MAX)
                .map(|(name, value)| (json_text(name), json!(json_text(value))));
            Json::Object(pairs.collect())
        }
    }
}

fn names_json(names: &[SafeText]) -> Json {
    names.iter().take(JSON_ITEMS_MAX).map(json_text).collect()
}
