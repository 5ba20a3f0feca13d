//! Copilot CLI: `--output-format json`.
//!
//! A `session.error` decides, unless the model has spoken after it; else the exit code in `result`.
//! What the provider answered stands in `model.call_failure` only, with the time of its reset.
//! Tokens are in a file of their own.

use super::{AgentOutput, Failure, Report, number, status, text};
use backstop_core::{Reason, Usage};
use serde_json::{Value, json};

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    let mut answer: Option<Value> = None;
    for event in events {
        match text(event, "/type") {
            Some("assistant.message") => {
                output.add_text(text(event, "/data/content").unwrap_or_default());
                output.report = Report::Unsaid;
            }
            Some("model.call_failure") => {
                answer = answered(event);
            }
            Some("session.error") => {
                let kind = text(event, "/data/errorType");
                let code = status(event.pointer("/data/statusCode"));
                output.report = Report::Failed(Failure {
                    status: code,
                    text: text(event, "/data/message").unwrap_or_default().to_owned(),
                    fields: json!({"type": "session.error", "errorType": kind, "statusCode": code}),
                    resets_at: answer.as_ref().and_then(|body| body.get("resets_at")?.as_i64()),
                    window: None,
                    model: None,
                    reason: reason(kind, text(event, "/data/message").unwrap_or_default()),
                    is_answer: code.is_some(),
                });
            }
            Some("permission.completed") if text(event, "/data/result/kind").is_some_and(is_denial) => {
                let what = text(event, "/data/request/fullCommandText")
                    .or_else(|| text(event, "/data/request/fileName"))
                    .or_else(|| text(event, "/data/requestId"));
                output.add_denial(what.unwrap_or("a tool").to_owned());
            }
            Some("result") => {
                output.session_id = text(event, "/sessionId").map(str::to_owned);
                if output.report == Report::Unsaid && event.get("exitCode") == Some(&Value::from(0)) {
                    output.report = Report::Succeeded;
                }
            }
            _ => {}
        }
    }
}

/// What the provider answered, where that is an object.
fn answered(event: &Value) -> Option<Value> {
    serde_json::from_str(text(event, "/data/errorMessage")?).ok()
}

/// The request that failed, where an event tells of one. It repeats it by itself, or sleeps until
/// the end of a limit that is near.
pub(super) fn failed_request(event: &Value) -> Option<Failure> {
    if text(event, "/type") != Some("model.call_failure") {
        return None;
    }
    let (code, answer) = (status(event.pointer("/data/statusCode")), answered(event));
    let words = answer.as_ref().and_then(|body| text(body, "/message"));
    let words = words.or_else(|| text(event, "/data/errorMessage")).unwrap_or_default();
    let framed = code.map_or_else(|| words.to_owned(), |code| format!("{code} {words}"));
    Some(Failure {
        status: code,
        reason: reason(None, &framed),
        fields: json!({"type": "model.call_failure", "code": text(event, "/data/errorCode"), "statusCode": code}),
        resets_at: answer.as_ref().and_then(|body| body.get("resets_at")?.as_i64()),
        text: framed,
        is_answer: code.is_some(),
        ..Failure::default()
    })
}

/// Whether an event says that the model answers or a tool works: the request that failed before was
/// got over.
pub(super) fn is_progress(event: &Value) -> bool {
    let kinds = ["assistant.message", "assistant.reasoning", "assistant.tool_call", "tool."];
    text(event, "/type").is_some_and(|kind| kinds.iter().any(|known| kind.starts_with(known)))
}

/// What its own words say without doubt. Those for a limit that resets are those of money, too.
pub(in crate::agent) fn reason(kind: Option<&str>, words: &str) -> Option<Reason> {
    if words.contains("rejected the prompt as too long") {
        return Some(Reason::ContextOverflow);
    }
    let is_limit = kind == Some("rate_limit") || words.starts_with("429 The usage limit has been reached");
    is_limit.then_some(Reason::RateLimited)
}

fn is_denial(kind: &str) -> bool {
    kind.starts_with("denied")
}

/// What the file with its statistics says: of the whole session, of all its models.
pub(super) fn usage_file(bytes: &[u8]) -> Option<Usage> {
    let all: Value = serde_json::from_slice(bytes).ok()?;
    let models = all.get("modelMetrics")?.as_object()?;
    let sum = |path: &str| models.values().map(|model| number(model, path)).fold(0, u64::saturating_add);
    Some(Usage {
        input_tokens: sum("/usage/inputTokens"),
        output_tokens: sum("/usage/outputTokens"),
        cost_usd: None,
    })
}
