//! opencode: `run --format json`.
//!
//! An `error` decides unless the model has finished after it. Exit codes mean little there: it
//! exits 0 after errors, and hangs after others.

use super::{AgentOutput, Failure, Report, number, status, text};
use backstop_core::{Reason, Usage};
use serde_json::{Value, json};

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    for event in events {
        if let Some(id) = text(event, "/sessionID") {
            output.session_id = Some(id.to_owned());
        }
        match text(event, "/type") {
            Some("text") => output.add_text(text(event, "/part/text").unwrap_or_default()),
            Some("error") => {
                let error = event.get("error").unwrap_or(&Value::Null);
                let name = text(error, "/name").unwrap_or_default();
                let words = text(error, "/data/message").or_else(|| text(error, "/message"));
                let code = error.pointer("/data/statusCode").or_else(|| error.get("statusCode"));
                output.report = Report::Failed(Failure {
                    status: status(code),
                    text: words.unwrap_or(name).to_owned(),
                    is_answer: name == "APIError",
                    fields: json!({"type": "error", "error": {"name": name, "statusCode": status(code)}}),
                    ..Failure::default()
                });
            }
            Some("step_finish") => {
                // `tool-calls` means that another step follows.
                if text(event, "/part/reason") == Some("stop") {
                    output.report = Report::Succeeded;
                } else if let Some(failure) = broken_off(event) {
                    output.report = Report::Failed(failure);
                }
                output.usage = Some(output.usage.unwrap_or_default().plus(step_usage(event)));
            }
            _ => {}
        }
    }
}

/// The failure that a step stands for whose answer broke off before its first word. It begins the
/// next step as if nothing were, without end.
pub(super) fn broken_off(event: &Value) -> Option<Failure> {
    let is_unknown =
        text(event, "/type") == Some("step_finish") && text(event, "/part/reason") == Some("unknown");
    (is_unknown && step_usage(event).output_tokens == 0).then(lost)
}

/// The failure of an answer that broke off before its first word.
pub(super) fn lost() -> Failure {
    Failure {
        text: "the connection to the model was lost before it had answered".to_owned(),
        fields: json!({"type": "step_finish", "reason": "unknown"}),
        reason: Some(Reason::NetworkTransient),
        ..Failure::default()
    }
}

/// What one step used. Thinking is counted apart from the output there.
fn step_usage(step: &Value) -> Usage {
    let sum = |paths: &[&str]| paths.iter().map(|path| number(step, path)).fold(0, u64::saturating_add);
    Usage {
        input_tokens: sum(&["/part/tokens/input", "/part/tokens/cache/read", "/part/tokens/cache/write"]),
        output_tokens: sum(&["/part/tokens/output", "/part/tokens/reasoning"]),
        cost_usd: step.pointer("/part/cost").and_then(Value::as_f64),
    }
}
