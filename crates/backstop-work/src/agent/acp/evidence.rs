//! What the fields of an answer say beyond the protocol: each agent puts what its provider said
//! elsewhere.

use super::super::dialect::{Failure, status_in};
use backstop_classify::model_of_window;
use backstop_core::{LimitWindow, Reason, Usage};
use serde_json::{Value, json};

/// How much of an error's texts is read.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The failure that an error of JSON-RPC stands for.
pub(super) fn failure(error: &Value) -> Failure {
    let data = error.get("data").unwrap_or(&Value::Null);
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut parts: Vec<String> = Vec::new();
    let texts = [
        text(error, "message"),
        text(data, "message"),
        text(data, "details"),
        data.as_str().map(str::to_owned),
    ];
    for part in texts.into_iter().flatten() {
        // The name of the code says nothing, and what follows it everything.
        let part = part.strip_prefix("Internal error: ").unwrap_or(&part).to_owned();
        if !part.trim().is_empty() && !parts.contains(&part) && part != "Internal error" {
            parts.push(part);
        }
    }
    let mut words = parts.join("\n");
    words.truncate(words.floor_char_boundary(TEXT_BYTES_MAX));
    let code = error.get("code").and_then(Value::as_i64);
    // Gemini answers with the HTTP status itself.
    let http = code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    let kind = text(data, "errorKind");
    let codex = data.get("codex_error_info").unwrap_or(&Value::Null);
    let status = http
        .or_else(|| nested_status(codex))
        .or_else(|| parts.iter().find_map(|part| status_in(part)))
        .or_else(|| kind.as_deref().and_then(status_of_kind));
    Failure {
        status,
        reason: reason(code, kind.as_deref(), codex, &words),
        text: if words.is_empty() { "it failed and did not say why".to_owned() } else { words },
        // OpenCode's name for whatever its provider refuses; it tells no status.
        is_answer: text(data, "errorName").as_deref() == Some("APIError"),
        fields: json!({"status": http, "errorKind": kind, "codex_error_info": codex}),
        ..Failure::default()
    }
}

/// The HTTP status somewhere in Codex' error information.
fn nested_status(value: &Value) -> Option<u16> {
    let fields = value.as_object()?;
    let own =
        fields.get("http_status_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    own.or_else(|| fields.values().find_map(nested_status))
}

/// The HTTP status that Claude Code's kind of an error stands for.
fn status_of_kind(kind: &str) -> Option<u16> {
    match kind {
        "rate_limit" => Some(429),
        "overloaded" => Some(529),
        "server_error" => Some(500),
        "authentication_failed" => Some(401),
        _ => None,
    }
}

/// What a code of the agent's own says without doubt.
fn reason(code: Option<i64>, kind: Option<&str>, codex: &Value, words: &str) -> Option<Reason> {
    match (code, kind, codex.as_str()) {
        (_, Some("rate_limit"), _) | (_, _, Some("usage_limit_exceeded")) => Some(Reason::RateLimited),
        (_, Some("billing_error"), _) => Some(Reason::QuotaExhausted),
        (_, Some("authentication_failed"), _) => Some(Reason::AuthError),
        (_, _, Some("context_window_exceeded")) => Some(Reason::ContextOverflow),
        (_, Some("invalid_request"), _) if words.contains("Prompt is too long") => {
            Some(Reason::ContextOverflow)
        }
        // Gemini's: it is there again tomorrow, whatever else a quota may be.
        (Some(429), ..) if words.contains("daily quota") => Some(Reason::RateLimited),
        _ if words.contains("stream ended without") => Some(Reason::NetworkTransient),
        // The protocol's own code for it.
        (Some(-32000), ..) if words.contains("uthentication") => Some(Reason::AuthError),
        _ => None,
    }
}

/// Why a turn ended, where that is no success: `refusal`, `max_tokens`, `max_turn_requests`,
/// `cancelled`.
pub(super) fn stopped(reason: &str) -> Option<Failure> {
    let (words, reason) = match reason {
        "end_turn" => return None,
        "refusal" => ("the model refused to go on", Reason::ContentPolicy),
        "max_tokens" => ("the model's answer reached its longest length", Reason::TaskIncomplete),
        "max_turn_requests" => {
            ("the agent used all requests that one turn may have", Reason::BudgetExhausted)
        }
        "cancelled" => {
            ("the agent cancelled its turn, and nobody here had asked for that", Reason::Interrupted)
        }
        other => {
            let text = format!("the turn ended with `{}`", other.chars().take(60).collect::<String>());
            return Some(Failure { text, fields: json!({"stopReason": other}), ..Failure::default() });
        }
    };
    let fields = json!({"stopReason": words});
    Some(Failure { text: words.to_owned(), fields, reason: Some(reason), ..Failure::default() })
}

/// What a turn used, as the answer to the prompt says.
pub(super) fn usage(result: &Value) -> Option<Usage> {
    let number = |value: &Value, names: &[&str]| {
        let sum =
            |sum: u64, name: &&str| sum.saturating_add(value.get(*name).and_then(Value::as_u64).unwrap_or(0));
        names.iter().fold(0, sum)
    };
    if let Some(usage) = result.get("usage").filter(|usage| usage.is_object()) {
        return Some(Usage {
            input_tokens: number(usage, &["inputTokens", "cachedReadTokens", "cachedWriteTokens"]),
            output_tokens: number(usage, &["outputTokens", "thoughtTokens"]),
            cost_usd: None,
        });
    }
    let quota = result.pointer("/_meta/quota/token_count")?;
    Some(Usage {
        input_tokens: number(quota, &["input_tokens"]),
        output_tokens: number(quota, &["output_tokens"]),
        cost_usd: None,
    })
}

/// A limit that let nothing through, as a usage update tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RejectedLimit {
    /// When it ends, in seconds since 1970.
    pub(super) resets_at: i64,
    pub(super) window: Option<LimitWindow>,
    /// The model that it is of, where it is that of one model.
    pub(super) model: Option<&'static str>,
}

/// The limit that a usage update says has refused: Claude Code's.
pub(super) fn rejected(update: &Value) -> Option<RejectedLimit> {
    let limit = update.get("_meta")?.get("_claude/rateLimit")?;
    if limit.get("status").and_then(Value::as_str) != Some("rejected") {
        return None;
    }
    let kind = limit.get("rateLimitType").and_then(Value::as_str).unwrap_or_default();
    let resets_at = limit.get("resetsAt")?.as_i64()?;
    Some(RejectedLimit { resets_at, window: LimitWindow::in_text(kind), model: model_of_window(kind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agents_fields_say_what_the_provider_said() {
        let cases = [
            (json!({"code": 401, "message": "bad key"}), Some(401), None),
            (
                json!({"code": 429, "message": "You have exhausted your daily quota on this model."}),
                Some(429),
                Some(Reason::RateLimited),
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"message": "x", "codex_error_info":
                    {"response_too_many_failed_attempts": {"http_status_code": 429}}}}),
                Some(429),
                None,
            ),
            (
                json!({"code": -32603, "data": {"message": "You\u{2019}ve hit your usage limit. Try again at 1:02 PM.",
                    "codex_error_info": "usage_limit_exceeded"}}),
                None,
                Some(Reason::RateLimited),
            ),
            (
                json!({"code": -32603, "message": "Internal error: You've hit your 5-hour limit", "data": {"errorKind": "rate_limit"}}),
                Some(429),
                Some(Reason::RateLimited),
            ),
            (json!({"code": -32000, "message": "Authentication required"}), None, Some(Reason::AuthError)),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"details": "529 Overloaded"}}),
                Some(529),
                None,
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"message": "unexpected status 401 Unauthorized: {}"}}),
                Some(401),
                None,
            ),
            (
                json!({"code": -32603, "message": "Prompt is too long", "data": {"errorKind": "invalid_request"}}),
                None,
                Some(Reason::ContextOverflow),
            ),
            (
                json!({"code": -32603, "message": "Internal error: invalid x-api-key", "data": {"errorName": "APIError"}}),
                None,
                None,
            ),
            (json!(null), None, None),
        ];
        for (error, status, reason) in cases {
            let failure = failure(&error);
            assert_eq!((failure.status, failure.reason), (status, reason), "{error}");
            assert!(
                !failure.text.is_empty() && !failure.text.starts_with("Internal error"),
                "{}",
                failure.text
            );
        }
    }

    #[test]
    fn a_limit_that_a_usage_update_tells_has_its_window_and_its_model() {
        let told = |kind: &str, status: &str| {
            let limit = json!({"status": status, "resetsAt": 1_790_000_000, "rateLimitType": kind});
            let update = json!({"sessionUpdate": "usage_update", "_meta": {"_claude/rateLimit": limit}});
            rejected(&update).map(|limit| (limit.resets_at, limit.window, limit.model))
        };
        let (at, week) = (1_790_000_000, Some(LimitWindow::Week));
        assert_eq!(told("seven_day_opus", "rejected"), Some((at, week, Some("opus"))));
        assert_eq!(told("five_hour", "rejected"), Some((at, Some(LimitWindow::FiveHour), None)));
        assert_eq!(told("seven_day_opus", "allowed_warning"), None);
    }

    #[test]
    fn opencodes_api_errors_are_answers_of_its_provider() {
        let error =
            json!({"code": -32603, "message": "invalid x-api-key", "data": {"errorName": "APIError"}});
        assert!(failure(&error).is_answer);
        assert!(!failure(&json!({"code": -32603, "message": "invalid argument"})).is_answer);
    }

    #[test]
    fn the_end_of_a_turn_is_no_success_and_some_ends_are_failures() {
        assert!(stopped("end_turn").is_none());
        assert_eq!(stopped("refusal").unwrap().reason, Some(Reason::ContentPolicy));
        assert!(stopped("something new").unwrap().text.contains("something new"));
    }
}
