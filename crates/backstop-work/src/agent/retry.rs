//! What the one who tries again is told about the last attempt.

use backstop_core::SafeText;
use serde::Serialize;

/// The last attempt's failure, under the six names that an older system gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RetryContext {
    /// The reason's code: `test_failure`.
    pub previous_error_type: String,
    /// The one line that says why.
    pub previous_error_message: SafeText,
    /// More of it: output, names, places.
    pub previous_error_details: SafeText,
    /// How many tasks were done.
    pub tasks_completed: u32,
    /// How many there are.
    pub tasks_total: u32,
    /// What to do differently; Backstop's own words.
    pub retry_guidance: String,
}

impl RetryContext {
    /// As JSON, for the file that `BACKSTOP_RETRY_CONTEXT` names. Controls are escapes: it may be
    /// printed.
    pub fn to_json(&self) -> String {
        // Six strings and numbers: this cannot fail.
        SafeText::json(&serde_json::to_string_pretty(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_exactly_the_six_keys() {
        let context =
            RetryContext { previous_error_message: "a\x1b[2Jb\n".into(), ..RetryContext::default() };
        let json = context.to_json();
        assert!(!json.contains('\x1b'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let want = [
            "previous_error_details",
            "previous_error_message",
            "previous_error_type",
            "retry_guidance",
            "tasks_completed",
            "tasks_total",
        ];
        assert_eq!(keys, want);
        assert_eq!(value["previous_error_message"], "a\x1b[2Jb\n");
    }
}
