//! How long somebody asks to wait, in what was said.

use backstop_core::{Hints, Timestamp};
use serde_json::json;

/// How long an answer asks to wait, in seconds: by its headers, where lines of what was said are
/// some, or by its words.
pub(crate) fn asked(said: &str, at: Timestamp) -> Option<f64> {
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut headers: Vec<(String, String)> = said.lines().filter_map(header).collect();
    headers.extend(inline(said));
    let wait = Hints::read(&headers, Some(&json!({ "message": said })), at).wait()?;
    (!wait.is_zero()).then_some(wait.as_secs_f64())
}

/// A header in the middle of a line, as workers put it into messages: `429 Too Many Requests,
/// retry-after: 20`.
fn inline(said: &str) -> Option<(String, String)> {
    const NAME: &str = "retry-after";
    let lower = said.to_ascii_lowercase();
    let rest = &lower[lower.find(NAME)? + NAME.len()..];
    let (name, rest) = match rest.strip_prefix("-ms") {
        Some(rest) => ("retry-after-ms", rest),
        None => (NAME, rest),
    };
    let rest = rest.trim_start_matches(['"', '\'', ':', '=', ' ']);
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (!number.is_empty()).then(|| (name.to_owned(), number))
}
