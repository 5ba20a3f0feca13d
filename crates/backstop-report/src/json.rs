//! JSON for other programs, safe to print.

use backstop_core::SafeText;
use serde::Serialize;
use std::time::Duration;

/// The version of the JSON outputs.
pub const JSON_SCHEMA: u32 = 1;

/// One line of JSON in which nothing acts on a terminal.
pub fn to_json(value: &impl Serialize) -> String {
    // Our own types always serialise: no maps with odd keys, no fallible fields.
    let text = serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    SafeText::json(&text)
}

/// A duration as JSON has it: milliseconds.
pub(crate) fn ms(of: Duration) -> u64 {
    u64::try_from(of.as_millis()).unwrap_or(u64::MAX)
}
