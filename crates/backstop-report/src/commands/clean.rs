//! What cleaning removed, and what was set aside.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{Cleaned, SafeText};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many characters of a path are shown.
const PATH_CHARS_MAX: usize = 400;

/// What was removed from a project's store; `None` where there is none.
#[derive(Debug, Clone)]
pub struct CleanedStore(pub Option<Cleaned>);

impl View for CleanedStore {
    fn text(&self, _: Style) -> String {
        let Some(cleaned) = &self.0 else { return "nothing is recorded in this project\n".to_owned() };
        format!(
            "removed {} runs with {} events; the store has {} KB, it had {} KB\n",
            cleaned.runs,
            cleaned.events,
            cleaned.bytes_after.div_ceil(1024),
            cleaned.bytes_before.div_ceil(1024)
        )
    }

    fn json(&self) -> Value {
        let Some(cleaned) = &self.0 else {
            return json!({ "schema": JSON_SCHEMA, "runs": 0, "events": 0 });
        };
        json!({
            "schema": JSON_SCHEMA, "runs": cleaned.runs, "events": cleaned.events,
            "bytes_before": cleaned.bytes_before, "bytes_after": cleaned.bytes_after,
        })
    }
}

/// The damaged stores that were set aside, by where they are now.
#[derive(Debug, Clone)]
pub struct SetAside(pub Vec<PathBuf>);

impl SetAside {
    fn paths(&self) -> Vec<String> {
        self.0.iter().map(|path| SafeText::new(path.display().to_string()).line(PATH_CHARS_MAX)).collect()
    }
}

impl View for SetAside {
    fn text(&self, _: Style) -> String {
        match self.paths() {
            paths if paths.is_empty() => "nothing is damaged, nothing was set aside\n".to_owned(),
            paths => format!("set aside, nothing deleted: {}\n", paths.join(", ")),
        }
    }

    fn json(&self) -> Value {
        json!({ "schema": JSON_SCHEMA, "set_aside": self.paths() })
    }
}
