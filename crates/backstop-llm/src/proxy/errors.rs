//! Errors in the shape that each API's clients understand.

use crate::Api;
use backstop_core::{Fault, Reason, RunId};
use serde_json::{Value, json};

/// A fault as an API's error: its status, and its body.
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// The status, the type for Anthropic, the code for OpenAI, the status for Gemini.
fn words(reason: Reason) -> (u16, &'static str, &'static str, &'static str) {
    match reason {
        Reason::RateLimited => (429, "rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
        Reason::QuotaExhausted => (429, "billing_error", "insufficient_quota", "RESOURCE_EXHAUSTED"),
        Reason::BudgetExhausted | Reason::StuckDetected => {
            (403, "permission_error", "budget_exhausted", "PERMISSION_DENIED")
        }
        Reason::AuthError => (401, "authentication_error", "invalid_api_key", "UNAUTHENTICATED"),
        Reason::PermissionDenied => (403, "permission_error", "permission_denied", "PERMISSION_DENIED"),
        Reason::ContextOverflow => {
            (400, "invalid_request_error", "context_length_exceeded", "INVALID_ARGUMENT")
        }
        Reason::ContentPolicy => {
            (400, "invalid_request_error", "content_policy_violation", "INVALID_ARGUMENT")
        }
        Reason::Validation | Reason::InvalidParameters => {
            (400, "invalid_request_error", "invalid_request", "INVALID_ARGUMENT")
        }
        // The proxy ends: another one may be there in a moment.
        Reason::Interrupted => (503, "api_error", "service_unavailable", "UNAVAILABLE"),
        Reason::Timeout => (504, "timeout_error", "timeout", "DEADLINE_EXCEEDED"),
        Reason::ServiceDown => (503, "overloaded_error", "service_unavailable", "UNAVAILABLE"),
        _ => (502, "api_error", "upstream_error", "UNAVAILABLE"),
    }
}

/// How the classifier marks the part of a signal that a cause was found in.
const PART_LABELS: [&str; 2] = ["message: ", "errno: "];

/// One line about a fault, for whoever reads the error: its reason, its cause, and what to do next.
/// Without a cause, the reason says it.
pub(super) fn message(fault: &Fault, run: RunId) -> String {
    let cause = fault.cause.as_ref().map(|cause| cause.line(500)).unwrap_or_default();
    let cause = PART_LABELS.iter().find_map(|label| cause.strip_prefix(label)).unwrap_or(&cause);
    let mut message = format!("backstop: {}", fault.reason);
    let next = fault.suggested_action.line(300);
    for (before, part) in [(": ", cause), ("; ", next.as_str())] {
        if !part.is_empty() {
            message.push_str(before);
            message.push_str(part);
        }
    }
    format!("{message} (`backstop explain {run}` says more)")
}

/// The error of an API for a fault.
pub(super) fn api_error(api: Api, reason: Reason, message: &str) -> ApiError {
    let (status, anthropic, openai, gemini) = words(reason);
    let body = match api {
        Api::Anthropic => json!({"type": "error", "error": {"type": anthropic, "message": message}}),
        Api::Chat | Api::Responses => {
            let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
            let kind = if status == 429 { openai } else { kind };
            json!({"error": {"message": message, "type": kind, "param": null, "code": openai}})
        }
        Api::Gemini => json!({"error": {"code": status, "message": message, "status": gemini}}),
    };
    ApiError { status, body }
}

/// The event that ends a stream with an error, as the API itself does.
pub(super) fn error_event(api: Api, reason: Reason, message: &str) -> Vec<u8> {
    let error = api_error(api, reason, message).body;
    match api {
        Api::Anthropic => format!("event: error\ndata: {error}\n\n"),
        Api::Chat | Api::Gemini => format!("data: {error}\n\n"),
        Api::Responses => {
            let code = words(reason).2;
            let failed = json!({"type": "response.failed", "sequence_number": 0, "response": {
                "id": "resp_backstop", "object": "response", "created_at": 0, "status": "failed", "output": [],
                "error": {"code": code, "message": message},
            }});
            format!("event: response.failed\ndata: {failed}\n\n")
        }
    }
    .into_bytes()
}

/// The same for an error that the provider sent itself.
pub(super) fn passed_event(api: Api, body: &[u8], reason: Reason, message: &str) -> Vec<u8> {
    let theirs: Option<Value> = serde_json::from_slice(body).ok();
    // As it was sent: line ends in JSON stand between tokens alone.
    let line = || String::from_utf8_lossy(body).replace(['\n', '\r'], " ");
    match (api, theirs) {
        (Api::Anthropic, Some(error)) if error.get("error").is_some() => {
            format!("event: error\ndata: {}\n\n", line()).into_bytes()
        }
        (Api::Chat | Api::Gemini, Some(error)) if error.get("error").is_some() => {
            format!("data: {}\n\n", line()).into_bytes()
        }
        (Api::Responses, Some(error)) => {
            let told = error.pointer("/error/message").and_then(Value::as_str).unwrap_or(message);
            let code = error.pointer("/error/code").and_then(Value::as_str).unwrap_or(words(reason).2);
            let failed = json!({"type": "response.failed", "sequence_number": 0, "response": {
                "id": "resp_backstop", "object": "response", "created_at": 0, "status": "failed", "output": [],
                "error": {"code": code, "message": told},
            }});
            format!("event: response.failed\ndata: {failed}\n\n").into_bytes()
        }
        _ => error_event(api, reason, message),
    }
}

/// A provider's error with a note behind its message, in its own shape; none where it has no
/// message.
pub(super) fn with_note(body: &[u8], note: &str) -> Option<Vec<u8>> {
    let mut error: Value = serde_json::from_slice(body).ok()?;
    let path = ["/error/message", "/message", "/error"]
        .into_iter()
        .find(|path| error.pointer(path).is_some_and(Value::is_string))?;
    let Some(Value::String(text)) = error.pointer_mut(path) else { return None };
    text.push_str(" (");
    text.push_str(note);
    text.push(')');
    Some(error.to_string().into_bytes())
}

/// What keeps a client from giving up while it waits.
pub(super) fn keep_alive(api: Api) -> &'static [u8] {
    match api {
        Api::Anthropic => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        Api::Chat | Api::Responses | Api::Gemini => b": keep-alive\n\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::events::{Event, classify};
    use backstop_core::SafeText;

    #[test]
    fn an_error_of_the_provider_passes_as_it_was_sent() {
        let body = b"{\"type\": \"error\",\n \"error\": {\"message\": \"m\", \"n\": 1.50}}\n";
        let passed = passed_event(Api::Anthropic, body, Reason::Unknown, "x");
        let want =
            "event: error\ndata: {\"type\": \"error\",  \"error\": {\"message\": \"m\", \"n\": 1.50}} \n\n";
        assert_eq!(String::from_utf8(passed).unwrap(), want);
    }

    #[test]
    fn every_error_is_one_that_the_apis_clients_know() {
        for api in Api::ALL {
            for reason in
                [Reason::RateLimited, Reason::ContextOverflow, Reason::NetworkPermanent, Reason::Unknown]
            {
                let error = api_error(api, reason, "m");
                assert!((400..600).contains(&error.status));
                assert_eq!(error.body["error"]["message"], "m", "{api}");
                let event = error_event(api, reason, "m");
                assert!(matches!(classify(api, &event, true), Event::Error(_)), "{api}");
                let passed = passed_event(api, error.body.to_string().as_bytes(), reason, "m");
                assert!(matches!(classify(api, &passed, true), Event::Error(_)), "{api}");
                let garbage = passed_event(api, b"<html>", reason, "m");
                assert!(matches!(classify(api, &garbage, true), Event::Error(_)), "{api}");
            }
            assert_eq!(classify(api, keep_alive(api), false), Event::Preamble);
        }
    }

    #[test]
    fn a_message_says_what_happened_and_what_to_type_next() {
        let run = RunId::from_random(7, 4);
        let mut fault = Fault::new(Reason::NetworkPermanent);
        fault.suggested_action = SafeText::new("");
        assert_eq!(
            message(&fault, run),
            format!("backstop: network_permanent (`backstop explain {run}` says more)")
        );
        fault.cause = Some(SafeText::new("errno: ENOTFOUND"));
        fault.suggested_action = SafeText::new("check the host name and DNS");
        let said = message(&fault, run);
        assert!(
            said.starts_with("backstop: network_permanent: ENOTFOUND; check the host name and DNS ("),
            "{said}"
        );
    }

    #[test]
    fn a_note_stands_behind_the_providers_message() {
        let noted = |body: &str| with_note(body.as_bytes(), "n").map(|body| String::from_utf8(body).unwrap());
        assert_eq!(
            noted(r#"{"error":{"message":"m","type":"x"},"type":"error"}"#).as_deref(),
            Some(r#"{"error":{"message":"m (n)","type":"x"},"type":"error"}"#)
        );
        assert_eq!(noted(r#"{"message":"m"}"#).as_deref(), Some(r#"{"message":"m (n)"}"#));
        assert_eq!(noted(r#"{"error":"m"}"#).as_deref(), Some(r#"{"error":"m (n)"}"#));
        assert_eq!((noted("<html>"), noted("{}")), (None, None));
    }
}
