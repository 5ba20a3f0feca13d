//! JSON output that is safe to print on a terminal.

use backstop_core::SafeText;
use serde::Serialize;
use std::time::Duration;

/// The version of the JSON outputs.
pub const JSON_SCHEMA: u32 = 1;

/// The value as one line of JSON without terminal control sequences.
pub fn to_json(value: &impl Serialize) -> String {
    // Our own types always serialise: no maps with odd keys, no fallible fields.
    let text = serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    SafeText::json(&text)
}

/// A duration in milliseconds.
pub(crate) fn ms(of: Duration) -> u64 {
    u64::try_from(of.as_millis()).unwrap_or(u64::MAX)
}
