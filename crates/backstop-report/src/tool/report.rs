//! The failure report: JSON for a program whose call failed in every attempt.

use crate::JSON_SCHEMA;
use crate::notice::json_text;
use backstop_core::{Fault, SafeText};
use serde_json::{Value, json};

/// The report of a tool that failed in every attempt: `tool`, `attempts`, `errors`, `suggestion`.
pub fn failure_report(tool: &SafeText, errors: &[SafeText], suggestion: &SafeText) -> Value {
    let line = |(n, error): (usize, &SafeText)| {
        let error = json_text(error);
        let error = if error.is_empty() { "(no message)" } else { &error };
        format!("Attempt {}: {error}", n + 1)
    };
    json!({
        "schema": JSON_SCHEMA,
        "tool": json_text(tool),
        "attempts": errors.len(),
        "errors": errors.iter().enumerate().map(line).collect::<Vec<_>>(),
        "suggestion": json_text(suggestion),
    })
}

/// The suggestion of a failure report, taken from the last fault.
pub fn failure_suggestion(last: &Fault) -> SafeText {
    match last.suggested_action.is_empty() {
        true => SafeText::new(last.reason.first_step()),
        false => last.suggested_action.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Reason;

    #[test]
    fn a_report_has_the_seeds_keys() {
        let errors = ["connection timeout", "connection timeout", "service unavailable"].map(SafeText::from);
        let fault = Fault::new(Reason::NetworkTransient);
        let report = failure_report(&"tool_name".into(), &errors, &failure_suggestion(&fault));
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap(), @r#"
        {
          "attempts": 3,
          "errors": [
            "Attempt 1: connection timeout",
            "Attempt 2: connection timeout",
            "Attempt 3: service unavailable"
          ],
          "schema": 1,
          "suggestion": "wait a moment and try again",
          "tool": "tool_name"
        }
        "#);
    }

    #[test]
    fn the_last_fault_says_what_to_do() {
        for reason in Reason::all() {
            assert!(!failure_suggestion(&Fault::new(reason)).is_empty(), "{reason}");
        }
        let mut fault = Fault::new(Reason::AuthError);
        fault.suggested_action = "renew API_KEY".into();
        assert_eq!(failure_suggestion(&fault).raw(), "renew API_KEY");
    }
}
