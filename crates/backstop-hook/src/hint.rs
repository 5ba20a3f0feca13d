//! How long somebody asks to wait, in what was said.

use backstop_core::{Hints, Timestamp};
use serde_json::json;

/// How long an answer asks to wait, in seconds: by its headers, where lines of what was said are some, or by its words.
pub(crate) fn asked(said: &str, at: Timestamp) -> Option<f64> {
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers: Vec<(String, String)> = said.lines().filter_map(header).collect();
    let wait = Hints::read(&headers, Some(&json!({ "message": said })), at).wait()?;
    (!wait.is_zero()).then_some(wait.as_secs_f64())
}
