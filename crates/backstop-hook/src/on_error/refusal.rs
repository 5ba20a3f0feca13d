//! What is said to a report that cannot be read.

use super::answer::HOOK;
use crate::InputError;
use backstop_report::JSON_SCHEMA;
use serde_json::{Value, json};

/// What is said where there is no answer: one object, with the place of what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where it is.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl From<&InputError> for Refusal {
    fn from(error: &InputError) -> Self {
        Self { place: error.place(), message: error.to_string(), hint: error.hint().to_owned() }
    }
}

impl Refusal {
    /// The object.
    pub fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA,
            "hook": HOOK,
            "error_classified": false,
            "retry": false,
            "error": { "place": self.place, "message": self.message, "hint": self.hint },
        })
    }
}
