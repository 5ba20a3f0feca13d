//! A changed setting.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{Redactor, SafeText};
use serde_json::{Value, json};
use std::path::Path;

/// How many characters of a value are shown.
const VALUE_CHARS_MAX: usize = 200;

/// A key that was set or removed in a file.
#[derive(Debug, Clone)]
pub struct ConfigChange<'c> {
    /// The key.
    pub key: &'c str,
    /// The file.
    pub path: &'c Path,
    /// The file as it is shown.
    pub shown: &'c str,
    /// The value that the file had.
    pub before: Option<&'c str>,
    /// The value that it has now.
    pub after: Option<&'c str>,
    /// Whether the file existed.
    pub existed: bool,
    /// Whether the file sets a key that needs trust.
    pub needs_trust: bool,
    /// The value that takes effect, and what sets it.
    pub effective: (&'c str, String),
    /// Masks secrets in values.
    pub redactor: &'c Redactor,
}

impl ConfigChange<'_> {
    /// A value as it is shown.
    pub fn value(redactor: &Redactor, text: &str) -> String {
        SafeText::new(redactor.redact(text).into_owned()).line(VALUE_CHARS_MAX)
    }
}

impl View for ConfigChange<'_> {
    fn text(&self, _: Style) -> String {
        let (file, key) = (self.shown, self.key);
        let shown = |text: &str| Self::value(self.redactor, text);
        match (self.before, self.after) {
            (before, Some(after)) => {
                let before = before.map_or_else(|| "not set".to_owned(), shown);
                let new = if self.existed { "" } else { " (new)" };
                format!("{file}{new}: {key} = {} (was {before})\n", shown(after))
            }
            (Some(before), None) => {
                let (text, origin) = &self.effective;
                let (before, text) = (shown(before), shown(text));
                format!("{file}: {key} removed (was {before}); it is {text} now, by {origin}\n")
            }
            (None, None) => format!("{file}: {key} is not set there\n"),
        }
    }

    fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA, "file": self.path.to_string_lossy(), "key": self.key,
            "before": self.before, "after": self.after, "made": !self.existed && self.after.is_some(),
            "needs_trust": self.needs_trust,
        })
    }
}
