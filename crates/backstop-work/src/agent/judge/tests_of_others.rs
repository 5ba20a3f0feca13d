//! What Gemini CLI, Copilot CLI and Qwen Code print when they fail, and when they do not.

use super::*;

fn gemini(message: &str) -> String {
    let error = serde_json::json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": message},
        "stats": {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0}});
    format!("{}\n{error}\n", r#"{"type":"init","session_id":"0844cef3","model":"gemini-2.5-pro"}"#)
}

fn gemini_api(code: u16, status: &str, message: &str) -> String {
    let body =
        serde_json::json!({"error": {"code": code, "status": status, "message": message, "details": []}});
    gemini(&format!("[API Error: {body}]"))
}

fn copilot(kind: &str, status: u16, message: &str, body: &str) -> String {
    let failure = serde_json::json!({"type": "model.call_failure", "data": {"statusCode": status, "errorMessage": body}});
    let error = serde_json::json!({"type": "session.error", "data": {"errorType": kind, "message": message, "statusCode": status}});
    format!("{failure}\n{error}\n{}\n", r#"{"type":"result","sessionId":"f955c11d","exitCode":1,"usage":{}}"#)
}

fn qwen(message: &str) -> String {
    serde_json::json!({"type": "result", "subtype": "error_during_execution", "session_id": "s-1", "is_error": true,
        "usage": {"input_tokens": 0, "output_tokens": 0}, "permission_denials": [], "error": {"message": message}})
    .to_string()
}

#[test]
fn their_failures_are_read_by_status_and_words() {
    use Reason::*;
    let overflow = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).";
    let cases = [
        (
            GeminiJsonl,
            145,
            gemini_api(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
            AuthError,
        ),
        (
            GeminiJsonl,
            173,
            gemini_api(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
            RateLimited,
        ),
        (
            GeminiJsonl,
            247,
            gemini_api(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            NetworkTransient,
        ),
        (GeminiJsonl, 144, gemini_api(400, "INVALID_ARGUMENT", overflow), ContextOverflow),
        (
            GeminiJsonl,
            173,
            gemini(
                "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.",
            ),
            RateLimited,
        ),
        (
            CopilotJsonl,
            1,
            copilot(
                "authentication",
                401,
                "Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).",
                "{}",
            ),
            AuthError,
        ),
        (
            CopilotJsonl,
            1,
            copilot("rate_limit", 429, "429 The usage limit has been reached", "{}"),
            RateLimited,
        ),
        (
            CopilotJsonl,
            1,
            copilot("query", 529, "Execution failed: Last error: 529 Overloaded", "{}"),
            NetworkTransient,
        ),
        (
            CopilotJsonl,
            1,
            copilot(
                "query",
                400,
                "The provider rejected the prompt as too long, but automatic recovery could not reduce it.",
                "{}",
            ),
            ContextOverflow,
        ),
        (
            CopilotJsonl,
            1,
            copilot("query", 400, "400 Your input exceeds the context window of this model.", "{}"),
            ContextOverflow,
        ),
        (QwenJson, 1, qwen("[API Error: 401 Incorrect API key provided.]"), AuthError),
        (
            QwenJson,
            1,
            qwen(
                "[API Error: 429 Rate limit reached. Please try again in 1s.]\nPossible quota limitations in place or slow response times detected.",
            ),
            RateLimited,
        ),
        (QwenJson, 1, qwen("[API Error: 529 Overloaded]"), NetworkTransient),
        (
            QwenJson,
            1,
            qwen("[API Error: 400 Your input exceeds the context window of this model.]"),
            ContextOverflow,
        ),
    ];
    for (dialect, code, stdout, want) in cases {
        assert_eq!(Judged::new(dialect, code, &stdout).reason(), Some(want), "{stdout}");
        // Whatever the exit code says.
        assert_eq!(Judged::new(dialect, 0, &stdout).reason(), Some(want), "{stdout}");
    }
}

#[test]
fn a_cut_stream_of_geminis_is_the_networks() {
    let cut = concat!(
        r#"{"type":"error","severity":"error","message":"Model stream ended without a finish reason."}"#,
        "\n",
        r#"{"type":"result","status":"error","stats":{"input_tokens":40,"output_tokens":20}}"#
    );
    assert_eq!(Judged::new(GeminiJsonl, 0, cut).reason(), Some(Reason::NetworkTransient));
}

#[test]
fn copilots_reset_stands_in_what_its_provider_answered() {
    let at = CLASSIFIED_AT + 7200;
    let body = format!(r#"{{"type":"usage_limit_reached","resets_at":{at},"resets_in_seconds":7200}}"#);
    let fault = Judged::new(
        CopilotJsonl,
        1,
        &copilot("rate_limit", 429, "429 The usage limit has been reached", &body),
    );
    assert_eq!(fault.fault().unwrap().facts.retry_after_seconds, Some(7200.0));
}

#[test]
fn geminis_exit_codes_tell_where_nothing_else_does() {
    use Reason::*;
    for (code, want) in
        [(41, AuthError), (53, BudgetExhausted), (173, RateLimited), (247, NetworkTransient), (2, Unknown)]
    {
        assert_eq!(Judged::new(GeminiJsonl, code, "").reason(), Some(want), "{code}");
    }
}

#[test]
fn an_agent_that_waits_in_silence_has_failed_of_what_it_said_last() {
    let gemini = "Suggested retry after 1s.. Retrying after 5677ms...\nAttempt 1 failed: Resource has been exhausted (e.g. check quota).";
    let qwen =
        "Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit reached. Please try again in 1s.]\n";
    let crash = "Retrying in 60s (attempt 1/10): [API Error: connect ECONNREFUSED]\n";
    for (dialect, words, want) in [
        (GeminiJsonl, Some(gemini), Reason::RateLimited),
        (QwenJson, Some(qwen), Reason::RateLimited),
        (QwenJson, Some(crash), Reason::NetworkTransient),
        (OpencodeJsonl, Some("Overloaded"), Reason::NetworkTransient),
        (OpencodeJsonl, Some("This request would exceed your account's rate limit."), Reason::RateLimited),
        (QwenJson, Some("Retrying in 60s"), Reason::Timeout),
        (QwenJson, None, Reason::Timeout),
    ] {
        let mut judged = Judged::new(dialect, 0, "");
        judged.ended = ended(Cause::Silence, None, "", "");
        judged.own_retry = words;
        assert_eq!(judged.reason(), Some(want), "{words:?}");
    }
}

#[test]
fn an_agent_that_was_ended_for_its_repetitions_has_failed_of_what_it_repeated() {
    let overflow = "prompt is too long: 213462 tokens > 200000 maximum";
    let mut judged = Judged::new(OpencodeJsonl, 0, "");
    judged.ended = ended(Cause::Stopped, None, "", "");
    assert_eq!(judged.reason(), Some(Reason::Interrupted), "somebody else's wish");
    judged.ended_for = Some(overflow);
    let fault = judged.fault().unwrap();
    assert_eq!(fault.reason, Reason::ContextOverflow);
    assert!(fault.evidence.iter().any(|evidence| evidence.rule == "agent.repeated"), "{fault:?}");
}

#[test]
fn what_a_provider_answers_is_read_as_an_answer_though_no_status_is_told() {
    let key = r#"{"type":"error","error":{"name":"APIError","data":{"message":"invalid x-api-key"}}}"#;
    assert_eq!(Judged::new(OpencodeJsonl, 1, key).reason(), Some(Reason::AuthError));
}

#[test]
fn what_they_did_is_read_where_they_did_it() {
    let result = r#"{"phase_id":"2a","status":"complete"}"#;
    let words = serde_json::to_string(result).unwrap();
    let gemini = format!(
        "{}\n{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Let \",\"delta\":true}}\n{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"me\",\"delta\":true}}\n{{\"type\":\"tool_use\"}}\n{{\"type\":\"message\",\"role\":\"assistant\",\"content\":{words},\"delta\":true}}\n{}\n",
        r#"{"type":"init","session_id":"g-1"}"#,
        r#"{"type":"result","status":"success","stats":{"input_tokens":30,"output_tokens":15}}"#,
    );
    let output = dialect::read_output(GeminiJsonl, &kept(&gemini));
    assert_eq!((output.session_id.as_deref(), output.last_words.as_deref()), (Some("g-1"), Some(result)));
    assert!(output.words.starts_with("Let me\n"), "{}", output.words);
    assert_eq!(output.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((30, 15)));
    let copilot = format!(
        "{{\"type\":\"assistant.message\",\"data\":{{\"content\":{words},\"toolRequests\":[]}}}}\n{}\n",
        r#"{"type":"result","sessionId":"c-1","exitCode":0}"#
    );
    let output = dialect::read_output(CopilotJsonl, &kept(&copilot));
    assert_eq!((output.session_id.as_deref(), &output.report), (Some("c-1"), &Report::Succeeded));
    let usage = br#"{"modelMetrics":{"a":{"usage":{"inputTokens":20,"outputTokens":10}},"b":{"usage":{"inputTokens":1}}}}"#;
    let usage = dialect::usage_file(CopilotJsonl, usage).unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (21, 10));
    assert!(
        dialect::usage_file(CopilotJsonl, b"no JSON").is_none()
            && dialect::usage_file(QwenJson, b"{}").is_none()
    );
    let qwen = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"q-1","result":{words},"usage":{{"input_tokens":40,"output_tokens":20}},"permission_denials":[]}}"#
    );
    let output = dialect::read_output(QwenJson, &kept(&qwen));
    assert_eq!((&output.report, output.usage_of_session), (&Report::Succeeded, true));
    for (dialect, text) in [(GeminiJsonl, &gemini), (CopilotJsonl, &copilot), (QwenJson, &qwen)] {
        assert_eq!(Judged::new(dialect, 0, text).reason(), None, "{text}");
    }
}
