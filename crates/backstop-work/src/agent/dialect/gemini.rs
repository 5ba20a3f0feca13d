//! Gemini CLI: `--output-format stream-json`.
//!
//! The last `result` decides, by its `status`. The provider's answer stands as JSON in its message.
//! Where it prints no `result`, its exit code tells: an HTTP status modulo 256 (173 is 429), or one
//! of its own (`builtin.rs`).

use super::{AgentOutput, Failure, Report, number, status, status_in, text};
use backstop_core::{Reason, Usage};
use serde_json::{Value, json};

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    // Its words come in pieces.
    let mut open = String::new();
    // Some of what went wrong stands in an event of its own, before a `result` that only says that
    // it did.
    let mut error = String::new();
    for event in events {
        match text(event, "/type") {
            Some("init") => output.session_id = text(event, "/session_id").map(str::to_owned),
            Some("message") if text(event, "/role") == Some("assistant") => {
                let piece = text(event, "/content").unwrap_or_default();
                if event.get("delta") != Some(&Value::Bool(true)) {
                    output.add_text(&std::mem::take(&mut open));
                }
                open.push_str(piece);
            }
            Some("message" | "tool_use" | "tool_result") => output.add_text(&std::mem::take(&mut open)),
            Some("error") => text(event, "/message").unwrap_or_default().clone_into(&mut error),
            Some("result") => {
                output.add_text(&std::mem::take(&mut open));
                ends(event, &error, output);
            }
            _ => {}
        }
    }
    output.add_text(&open);
}

/// Reads a `result`. `error` is what the last event of that name said.
fn ends(event: &Value, error: &str, output: &mut AgentOutput) {
    output.report = match text(event, "/status") {
        Some("success") => Report::Succeeded,
        Some(_) => {
            let words = text(event, "/error/message").unwrap_or(error);
            let body = api_error(words);
            let code = body.as_ref().and_then(|body| body.pointer("/error/code"));
            let said = body.as_ref().and_then(|body| text(body, "/error/message")).unwrap_or(words);
            let delay = body.as_ref().and_then(retry_delay);
            Report::Failed(Failure {
                status: status(code).or_else(|| status_in(words)),
                text: delay.map_or_else(|| said.to_owned(), |delay| format!("{said}\nretryDelay: {delay}")),
                fields: json!({
                    "type": "result", "status": "error", "error": {"type": text(event, "/error/type"),
                    "status": body.as_ref().and_then(|body| text(body, "/error/status"))},
                }),
                reason: words.contains("stream ended without").then_some(Reason::NetworkTransient),
                ..Failure::default()
            })
        }
        None => Report::Unsaid,
    };
    if let Some(stats) = event.get("stats") {
        output.usage = Some(Usage {
            input_tokens: number(stats, "/input_tokens"),
            output_tokens: number(stats, "/output_tokens"),
            cost_usd: None,
        });
    }
}

/// What the provider answered: `[API Error: {…}]`.
fn api_error(words: &str) -> Option<Value> {
    let (from, to) = (words.find('{')?, words.rfind('}')?);
    serde_json::from_str(words.get(from..=to)?).ok()
}

/// How long the provider says that it takes: `retryDelay` of its details.
fn retry_delay(body: &Value) -> Option<String> {
    let details = body.pointer("/error/details").and_then(Value::as_array)?;
    details.iter().find_map(|detail| text(detail, "/retryDelay")).map(str::to_owned)
}
