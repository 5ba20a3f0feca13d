//! claude: `--output-format stream-json` or `json`.
//!
//! The last `result` decides. Its `subtype` is `success` on failures too, and older versions exit 0
//! on them: `is_error`, `api_error_status` and `terminal_reason` are what counts.

use super::{AgentOutput, Failure, Report, number, status, text};
use backstop_classify::model_of_window;
use backstop_core::{LimitWindow, Usage};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Reasons for its end that are failures whatever else the result says.
const TERMINAL_FAILURES: &[&str] = &["prompt_too_long", "api_error"];

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    let mut limit = None;
    let (mut seen, mut messages) = (BTreeSet::new(), Usage::default());
    for event in events {
        if let Some(id) = text(event, "/session_id") {
            output.session_id = Some(id.to_owned());
        }
        match text(event, "/type") {
            Some("assistant") => {
                let content = event.pointer("/message/content").and_then(Value::as_array);
                for part in content.into_iter().flatten().filter(|p| text(p, "/type") == Some("text")) {
                    output.add_text(text(part, "/text").unwrap_or_default());
                }
                add_message(event, &mut seen, &mut messages);
            }
            Some("rate_limit_event") => RejectedLimit::read(event, &mut limit),
            Some("result") => ends(event, limit.as_ref(), &messages, output),
            _ => {}
        }
    }
    if output.usage.is_none() && !seen.is_empty() {
        output.usage = Some(messages);
    }
}

/// A limit that let nothing through.
struct RejectedLimit {
    /// `five_hour`, `seven_day`, `seven_day_opus`; empty where it is not told.
    kind: String,
    /// When it ends, in seconds since 1970.
    resets_at: Option<i64>,
}

impl RejectedLimit {
    /// Reads a `rate_limit_event`. One limit that lets through says nothing about another.
    fn read(event: &Value, known: &mut Option<Self>) {
        let kind = text(event, "/rate_limit_info/rateLimitType").unwrap_or_default();
        if text(event, "/rate_limit_info/status") == Some("rejected") {
            let resets_at = event.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
            *known = Some(Self { kind: kind.to_owned(), resets_at });
        } else if known.as_ref().is_some_and(|known| known.kind == kind) {
            *known = None;
        }
    }
}

/// Reads a `result`. `limit` is the one that refused before it, `messages` is what the messages
/// before it used.
fn ends(event: &Value, limit: Option<&RejectedLimit>, messages: &Usage, output: &mut AgentOutput) {
    let flag = event.get("is_error").and_then(Value::as_bool);
    let api = status(event.get("api_error_status"));
    let terminal = text(event, "/terminal_reason");
    let subtype = text(event, "/subtype").unwrap_or_default();
    let words = text(event, "/result").unwrap_or_default();
    let failed = flag == Some(true)
        || api.is_some_and(|status| status >= 400)
        || subtype.starts_with("error")
        || terminal.is_some_and(|t| TERMINAL_FAILURES.contains(&t));
    output.report = if failed {
        let errors = event.get("errors").and_then(Value::as_array);
        let listed: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).collect();
        Report::Failed(Failure {
            status: api,
            text: if words.is_empty() { listed.join("\n") } else { words.to_owned() },
            fields: json!({
                "type": "result", "subtype": subtype, "is_error": true, "api_error_status": api, "terminal_reason": terminal,
            }),
            resets_at: limit.and_then(|limit| limit.resets_at),
            window: limit.and_then(|limit| LimitWindow::in_text(&limit.kind)),
            model: limit.and_then(|limit| model_of_window(&limit.kind)),
            ..Failure::default()
        })
    } else if flag == Some(false) && terminal.is_none_or(|t| t == "completed") {
        Report::Succeeded
    } else {
        Report::Unsaid
    };
    output.add_text(words);
    output.structured = event.get("structured_output").filter(|v| v.is_object()).map(Value::to_string);
    for denial in event.get("permission_denials").and_then(Value::as_array).into_iter().flatten() {
        let tool = text(denial, "/tool_name").unwrap_or("a tool");
        let what = ["/tool_input/command", "/tool_input/file_path", "/tool_input/url"];
        let what = what.iter().find_map(|path| text(denial, path));
        output.add_denial(what.map_or_else(|| tool.to_owned(), |what| format!("{tool}: {what}")));
    }
    let cost = event.get("total_cost_usd").and_then(Value::as_f64);
    // `usage` is of the main agent alone, `modelUsage` is of its subagents too, and of the whole
    // session.
    let models = event.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    output.usage_of_session = models.is_some();
    output.usage = match models {
        Some(models) => {
            let input = ["/inputTokens", "/cacheReadInputTokens", "/cacheCreationInputTokens"];
            let sum = |paths: &[&str]| {
                let tokens = models.values().flat_map(|model| paths.iter().map(|path| number(model, path)));
                tokens.fold(0, u64::saturating_add)
            };
            Some(Usage { input_tokens: sum(&input), output_tokens: sum(&["/outputTokens"]), cost_usd: cost })
        }
        // The cost may be all that is told.
        None => match event.get("usage") {
            Some(usage) => Some(Usage { cost_usd: cost, ..tokens(usage) }),
            None => cost.map(|_| Usage { cost_usd: cost, ..*messages }),
        },
    };
}

/// The tokens of a `usage` object.
fn tokens(usage: &Value) -> Usage {
    let input = ["/input_tokens", "/cache_creation_input_tokens", "/cache_read_input_tokens"];
    Usage {
        input_tokens: input.iter().map(|path| number(usage, path)).fold(0, u64::saturating_add),
        output_tokens: number(usage, "/output_tokens"),
        cost_usd: None,
    }
}

/// What the messages say that they used: all that is known of a run that was ended before its
/// `result`.
fn add_message(event: &Value, seen: &mut BTreeSet<String>, sum: &mut Usage) {
    let Some(usage) = event.pointer("/message/usage") else { return };
    // A message with several parts is printed once for each.
    let id = text(event, "/message/id").unwrap_or_default();
    if id.is_empty() || !seen.insert(id.to_owned()) {
        return;
    }
    *sum = sum.plus(tokens(usage));
}
