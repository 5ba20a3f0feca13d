//! `backstop proxy` between clients and a provider that fails in every way.

use crate::docs::fits;
use crate::harness::{Project, schema, until};
use crate::proxy_provider::{
    Answered, Provider, ProxyProcess, Reply, STREAM_HEAD, cut_stream, json, stream, whole,
};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An API: its path, a request, what a good answer and a good stream look like.
pub(crate) struct ApiCase {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) stream_path: &'static str,
    pub(crate) preamble: &'static str,
    pub(crate) content: &'static str,
    pub(crate) end: &'static str,
    pub(crate) error_event: &'static str,
}

pub(crate) const APIS: [ApiCase; 4] = [
    ApiCase {
        name: "anthropic",
        path: "/v1/messages",
        stream_path: "/v1/messages",
        preamble: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        content: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n",
        end: "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        error_event: "event: error\ndata: {",
    },
    ApiCase {
        name: "chat",
        path: "/v1/chat/completions",
        stream_path: "/v1/chat/completions",
        preamble: "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        content: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n",
        end: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
        error_event: "data: {\"error\":{",
    },
    ApiCase {
        name: "responses",
        path: "/v1/responses",
        stream_path: "/v1/responses",
        preamble: "event: response.created\ndata: {\"type\":\"response.created\"}\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"content\":[]}}\n\nevent: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
        content: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n",
        end: "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}\n\n",
        error_event: "event: response.failed\ndata: {",
    },
    ApiCase {
        name: "gemini",
        path: "/v1beta/models/gemini-x:generateContent",
        stream_path: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        preamble: "",
        content: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]}}]}\n\n",
        end: "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":3}}\n\n",
        error_event: "data: {\"error\":{",
    },
];

impl ApiCase {
    fn events(&self) -> String {
        format!("{}{}{}", self.preamble, self.content, self.end)
    }

    pub(crate) fn request(&self, streams: bool) -> String {
        let stream = if streams { ",\"stream\":true" } else { "" };
        match self.name {
            "gemini" => r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#.to_owned(),
            "responses" => format!(r#"{{"model":"m-1"{stream},"input":[{{"role":"user","content":"hi"}}]}}"#),
            _ => format!(r#"{{"model":"m-1"{stream},"messages":[{{"role":"user","content":"hi"}}]}}"#),
        }
    }
}

pub(crate) const KEY: &str =
    "authorization: Bearer canary-secret-key-1234567890\r\nuser-agent: tester/1.0\r\nsession_id: s-1\r\n";

fn ok() -> Vec<u8> {
    json(
        200,
        "",
        &json!({"id": "x", "choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
    )
}

pub(crate) fn failed(status: u16, headers: &str) -> Vec<u8> {
    json(status, headers, &json!({"type": "error", "error": {"type": "x", "message": "try again"}}))
}

fn runs(project: &Project) -> Vec<Value> {
    project.run(&["runs", "--json"]).go().code(0).json()["runs"].as_array().cloned().unwrap_or_default()
}

#[test]
fn bytes_pass_as_they_are_and_a_success_leaves_no_run() {
    let project = Project::new("proxy-pass");
    let provider = Provider::new(|_, seen| {
        if seen.head.starts_with("HEAD /v1/models") {
            return Reply::Bytes(
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n".to_vec(),
            );
        }
        if seen.head.starts_with("GET /v1/models") {
            return Reply::Bytes(whole(200, "x-custom: 1\r\n", "models"));
        }
        Reply::Bytes(if String::from_utf8_lossy(&seen.body).contains("\"stream\":true") {
            stream(&APIS[1].events())
        } else {
            ok()
        })
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let odd = r#"{ "model":"m-1" , "messages":[{"role":"user","content":"\u00fc"}],  "x":1.50 }"#;
    let answer = proxy.post("/v1/chat/completions", KEY, odd);
    assert_eq!((answer.status, answer.header("x-backstop-attempts")), (200, Some("1")));
    assert_eq!(answer.json()["id"], "x");
    let seen = &provider.seen()[0];
    assert_eq!(String::from_utf8_lossy(&seen.body), odd);
    assert!(seen.head.contains("Bearer canary-secret-key-1234567890"), "{}", seen.head);
    for api in &APIS[1..2] {
        let answer = proxy.post(api.stream_path, KEY, &api.request(true));
        assert_eq!(
            (answer.status, answer.body.as_str(), answer.complete),
            (200, api.events().as_str(), true)
        );
    }
    // Any other path passes, and so does what is no JSON: the provider's answer is the answer.
    let models = proxy.raw("GET /v1/models?x=1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!((models.status, models.body.as_str(), models.header("x-custom")), (200, "models", Some("1")));
    let garbage = proxy.post("/v1/chat/completions", KEY, "{garbage");
    assert_eq!(garbage.status, 200);
    assert_eq!(proxy.stderr().lines().count(), 1, "{}", proxy.stderr());
    // The lengths that were announced are announced again, without a body too.
    let head = proxy.raw("HEAD /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, Some("5"), ""));
    assert_eq!(models.header("content-length"), Some("6"), "{models:?}");
    for (request, status) in [("CONNECT example.com:443", 405), ("GET /v1/../models", 400)] {
        let refused =
            proxy.raw(&format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
        assert_eq!(refused.status, status, "{request}: {refused:?}");
    }
    // What was counted is written while it runs.
    until("stats show what was used", || {
        let stats = project.run(&["stats", "--json"]).go().code(0).json();
        stats["models"][0]["tokens_in"] == 14
    });
    assert_eq!(proxy.end(), 0);
    assert_eq!(runs(&project).len(), 0);
    // What was used is counted all the same.
    let stats = project.run(&["stats", "--json"]).go().code(0).json();
    let models = &stats["models"];
    assert_eq!(models[0]["model"], "m-1", "{stats}");
    assert_eq!((&models[0]["tokens_in"], &models[0]["tokens_out"]), (&json!(14), &json!(6)), "{models}");
}

#[test]
fn what_passes_by_itself_is_not_noticed() {
    let cut = |api: &ApiCase| Reply::Bytes(cut_stream(api.preamble));
    for api in &APIS {
        let project = Project::new(&format!("proxy-recovers-{}", api.name));
        type Trouble = fn(&ApiCase) -> Reply;
        let troubles: Vec<(&str, Trouble)> = vec![
            ("529", |_| Reply::Bytes(failed(529, ""))),
            ("500", |_| Reply::Bytes(failed(500, ""))),
            ("a page", |_| {
                Reply::Bytes(whole(502, "content-type: text/html\r\n", "<html>Bad Gateway</html>"))
            }),
            ("reset before the first byte", |_| Reply::Reset(Vec::new())),
            ("closed without an answer", |_| Reply::Bytes(Vec::new())),
            ("half a head", |_| Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec())),
            ("an error in a stream", |api| {
                Reply::Bytes(stream(&format!("{}{}", api.preamble, hidden_error(api))))
            }),
        ];
        for (what, trouble) in troubles.into_iter().chain([("cut before content", cut as Trouble)]) {
            let good = api.events();
            let bad = trouble(api);
            let provider =
                Provider::new(move |n, _| if n == 0 { bad.clone() } else { Reply::Bytes(stream(&good)) });
            let proxy = ProxyProcess::start(&project, &provider, &[]);
            let answer = proxy.post(api.stream_path, KEY, &api.request(true));
            assert_eq!(
                (answer.status, answer.body.as_str()),
                (200, api.events().as_str()),
                "{}: {what}: {answer:?}",
                api.name
            );
            assert_eq!(answer.header("x-backstop-attempts"), Some("2"), "{}: {what}", api.name);
            assert_eq!(provider.seen().len(), 2, "{}: {what}", api.name);
        }
    }
}

/// An error as each API hides it in a stream.
fn hidden_error(api: &ApiCase) -> &'static str {
    match api.name {
        "anthropic" => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
        }
        "chat" => {
            "data: {\"error\":{\"message\":\"The server had an error while processing your request\",\"type\":\"server_error\",\"code\":null}}\n\n"
        }
        "responses" => {
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"An error occurred while processing your request.\"}}}\n\n"
        }
        _ => {
            "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n"
        }
    }
}

#[test]
fn a_rate_limit_is_waited_for_in_every_dialect() {
    let soon = "x-ratelimit-limit-requests: 5\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 300ms\r\n";
    let project = Project::new("proxy-429");
    for (n, (headers, body)) in [
        ("retry-after: 1\r\n", json!({"error": {"message": "x", "type": "rate_limit_error"}})),
        ("retry-after-ms: 200\r\n", json!({"error": {"message": "x"}})),
        (soon, json!({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}})),
        ("", json!({"error": {"message": "Rate limit reached for m-1. Please try again in 250ms.", "code": "rate_limit_exceeded"}})),
        ("", json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]}})),
        ("x-ms-retry-after-ms: 200\r\n", json!({"error": {"message": "x"}})),
        ("ratelimit: \"default\";r=0;t=1\r\n", json!({"error": {"message": "x"}})),
    ]
    .into_iter()
    .enumerate()
    {
        let provider = Provider::says(vec![json(429, headers, &body), ok()]);
        let proxy = ProxyProcess::start(&project, &provider, &[]);
        // An account each, so that one limit does not hold for the next.
        let key = format!("authorization: Bearer key-number-{n}-1234567890\r\n");
        let answer = proxy.post("/v1/chat/completions", &key, &APIS[1].request(false));
        assert_eq!((answer.status, answer.header("x-backstop-attempts")), (200, Some("2")), "{headers}{body}: {answer:?}");
        assert_eq!(provider.seen().len(), 2);
    }
    let kinds = project.kinds();
    assert!(kinds.contains(&"guard.updated".to_owned()), "{kinds:?}");
    // A client that has tried before waits all the same.
    let provider = Provider::says(vec![failed(429, "retry-after: 1\r\n"), ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let again = "authorization: Bearer key-again-1234567890\r\nx-stainless-retry-count: 1\r\n";
    let answer = proxy.post("/v1/chat/completions", again, &APIS[1].request(false));
    assert_eq!((answer.status, provider.seen().len()), (200, 2), "{answer:?}");
    // Accounts that are given in the address are told apart as well.
    let provider = Provider::new(|_, seen| {
        Reply::Bytes(if seen.head.contains("key=first-") {
            failed(429, "retry-after: 7999\r\n")
        } else {
            ok()
        })
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let with =
        |key: &str| proxy.post(&format!("{}?key={key}", APIS[3].path), "", &APIS[3].request(false)).status;
    assert_eq!([with("first-1234567890"), with("second-1234567890")], [429, 200]);
}

#[test]
fn a_limit_beyond_the_deadline_is_said_at_once_and_nothing_more_is_sent() {
    let project = Project::new("proxy-long-reset");
    let provider = Provider::says(vec![failed(429, "retry-after: 7999\r\nrequest-id: req_1\r\n")]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let first = proxy.post("/v1/messages", KEY, &APIS[0].request(false));
    assert_eq!((first.status, first.header("retry-after")), (429, Some("7999")), "{first:?}");
    assert_eq!((first.header("x-should-retry"), first.header("request-id")), (Some("false"), Some("req_1")));
    assert_eq!(first.json()["error"]["message"], "try again");
    // The next request of that account is answered from what is known; another account is not held.
    let second = proxy.post("/v1/messages", KEY, &APIS[0].request(false));
    assert_eq!((second.status, second.json()["type"].as_str()), (429, Some("error")), "{second:?}");
    assert_eq!(second.json()["error"]["type"], "rate_limit_error");
    let left: u64 = second.header("retry-after").unwrap().parse().unwrap();
    assert!((7000..=7999).contains(&left), "{left}");
    assert_eq!(provider.seen().len(), 1);
    proxy.post("/v1/messages", "x-api-key: another-account-1234567890\r\n", &APIS[0].request(false));
    assert_eq!(provider.seen().len(), 2);
}

#[test]
fn an_overflow_is_trimmed_once() {
    let long = |api: &ApiCase| {
        let turn = |role: &str, n: usize| {
            let text = format!("turn {n} {}", "word ".repeat(100));
            match api.name {
                "gemini" => {
                    json!({"role": if role == "assistant" { "model" } else { role }, "parts": [{"text": text}]})
                }
                "responses" if role == "assistant" => {
                    json!({"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]})
                }
                _ => json!({"role": role, "content": text}),
            }
        };
        let turns: Vec<Value> =
            (0..21).map(|n| turn(if n % 2 == 0 { "user" } else { "assistant" }, n)).collect();
        let key = match api.name {
            "gemini" => "contents",
            "responses" => "input",
            _ => "messages",
        };
        json!({"model": "m-1", key: turns}).to_string()
    };
    let words: [(usize, u16, Value); 6] = [
        (
            0,
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}}),
        ),
        (
            0,
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
        ),
        (
            1,
            400,
            json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (8000 in the messages, 213 in the completion).", "code": "context_length_exceeded"}}),
        ),
        (
            1,
            400,
            json!({"message": "The input (40960 tokens) is longer than the model's context length (32768 tokens)."}),
        ),
        (
            2,
            400,
            json!({"error": {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}}),
        ),
        (
            3,
            400,
            json!({"error": {"code": 400, "message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", "status": "INVALID_ARGUMENT"}}),
        ),
    ];
    let project = Project::new("proxy-overflow");
    for (api, status, words) in words {
        let api = &APIS[api];
        let provider = Provider::says(vec![json(status, "", &words), ok()]);
        let proxy = ProxyProcess::start(&project, &provider, &[]);
        let answer = proxy.post(api.path, KEY, &long(api));
        assert_eq!(answer.status, 200, "{words}: {answer:?}");
        let seen = provider.seen();
        assert_eq!(seen.len(), 2);
        assert!(seen[1].body.len() * 100 / seen[0].body.len() <= 60, "{words}");
        assert!(
            seen[1].json().to_string().contains("turn 0 ") && seen[1].json().to_string().contains("turn 20 ")
        );
        assert!(
            answer.header("x-backstop-changed").is_some_and(|changed| changed.starts_with("removed ")),
            "{answer:?}"
        );
    }
    // The same, whatever a gateway makes of its status, and whatever is said about the same again.
    let anthropic = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}});
    let wrapped = |code: Value| json!({"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum", "code": code}});
    for (status, headers, client, words) in [
        (400, "x-should-retry: false\r\n", "", &anthropic),
        (400, "", "x-stainless-retry-count: 1\r\n", &anthropic),
        (500, "", "", &wrapped(json!(502))),
        (502, "", "", &wrapped(json!(502))),
        (502, "", "", &wrapped(json!("500"))),
    ] {
        let provider = Provider::says(vec![json(status, headers, words), ok()]);
        let proxy = ProxyProcess::start(&project, &provider, &[]);
        let answer = proxy.post("/v1/messages", &format!("{KEY}{client}"), &long(&APIS[0]));
        assert_eq!((answer.status, provider.seen().len()), (200, 2), "{status} {headers}{client}{words}");
        let bodies = provider.seen();
        assert!(bodies[1].body.len() < bodies[0].body.len(), "{words}");
    }
    // Four times too long is cured by one trim, as the message says how much has to go.
    let fits = long(&APIS[1]).len() / 4;
    let provider = Provider::new(move |_, seen| {
        let words = format!(
            "This model's maximum context length is {fits} tokens. However, your messages resulted in {} tokens. Please reduce the length of the messages.",
            seen.body.len()
        );
        let error = json!({"error": {"message": words, "type": "invalid_request_error", "code": "context_length_exceeded"}});
        Reply::Bytes(if seen.body.len() > fits { json(400, "", &error) } else { ok() })
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/chat/completions", KEY, &long(&APIS[1]));
    assert_eq!((answer.status, provider.seen().len()), (200, 2), "{answer:?}");
    // Where the answer is what does not fit, a smaller one is asked for.
    let words = json!({"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1077 input tokens (32000 > 32768 - 1077).", "type": "BadRequestError", "param": null, "code": 400}});
    let provider = Provider::says(vec![json(400, "", &words), ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let request = r#"{"model":"m-1","max_tokens":32000,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(proxy.post("/v1/chat/completions", KEY, request).status, 200);
    assert_eq!(provider.seen()[1].json()["max_tokens"], 31_364);
    // What cannot be made smaller is not sent again, and not counted as sent.
    let provider = Provider::says(vec![json(400, "", &anthropic)]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/messages", KEY, &APIS[0].request(false));
    assert_eq!((answer.status, answer.header("x-backstop-attempts")), (400, Some("1")), "{answer:?}");
    assert_eq!(provider.seen().len(), 1);
    // Too long again: said as the provider says it, and not tried a third time.
    let still = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}});
    let provider = Provider::says(vec![json(400, "", &still)]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/messages", KEY, &long(&APIS[0]));
    assert_eq!(
        (answer.status, answer.header("x-should-retry"), provider.seen().len()),
        (400, Some("false"), 2)
    );
    assert!(answer.body.contains("213462") && answer.body.contains("unrecoverable"), "{answer:?}");
    let events = project.events();
    let recovered = events
        .iter()
        .find(|event| event["kind"] == "recovery.attempted" && event["success"] == true)
        .unwrap();
    assert!(recovered["detail"].as_str().is_some_and(|detail| detail.starts_with("removed ")), "{recovered}");
    let failed = events.iter().rfind(|event| event["kind"] == "recovery.attempted").unwrap();
    assert_eq!(failed["success"], false);
    assert!(failed["detail"].as_str().is_some_and(|detail| detail.starts_with("removed ")), "{failed}");
}

#[test]
fn a_stream_that_breaks_ends_with_the_apis_own_error() {
    let project = Project::new("proxy-broken-streams");
    for api in &APIS {
        let broken = format!("{}{}", api.preamble, api.content);
        let half = "data: {\"half an ev";
        for (what, reply) in [
            ("cut", Reply::Bytes(cut_stream(&broken))),
            ("cut in the middle of an event", Reply::Bytes(cut_stream(&format!("{broken}{half}")))),
            ("reset", Reply::Reset(cut_stream(&broken))),
            ("a clean end without the last event", Reply::Bytes(stream(&broken))),
        ] {
            let provider = Provider::new(move |_, _| reply.clone());
            let proxy = ProxyProcess::start(&project, &provider, &[]);
            let answer = proxy.post(api.stream_path, KEY, &api.request(true));
            assert_eq!((answer.status, answer.complete), (200, true), "{}: {what}", api.name);
            let (passed, error) = answer.body.split_at(broken.len());
            assert_eq!(passed, broken, "{}: {what}", api.name);
            assert!(error.starts_with(api.error_event), "{}: {what}: {error}", api.name);
            assert_eq!(provider.seen().len(), 1, "what was seen is not repeated");
        }
    }
    let all = runs(&project);
    assert!(!all.is_empty() && all.iter().all(|run| run["outcome"] == "failed"), "{all:?}");
}

#[test]
fn what_no_retry_cures_is_passed_on_at_once_and_recorded() {
    let project = Project::new("proxy-surfaced");
    for (status, body, reason) in [
        (
            401,
            json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
            "auth_error",
        ),
        (
            429,
            json!({"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "code": "insufficient_quota"}}),
            "quota_exhausted",
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "messages: at least one message is required"}}),
            "validation",
        ),
        (
            400,
            json!({"error": {"message": "The response was filtered due to the prompt triggering content management policy.", "code": "content_filter"}}),
            "content_policy",
        ),
    ] {
        let provider = Provider::says(vec![json(status, "x-request-id: r1\r\n", &body)]);
        let proxy = ProxyProcess::start(&project, &provider, &[]);
        let answer = proxy.post("/v1/messages", KEY, &APIS[0].request(false));
        assert_eq!((answer.status, answer.json()), (status, body));
        assert_eq!(answer.header("x-backstop-reason"), Some(reason));
        assert_eq!(
            (answer.header("x-should-retry"), answer.header("x-request-id")),
            (Some("false"), Some("r1"))
        );
        assert_eq!(provider.seen().len(), 1);
        let events = project.events();
        let classified = events.iter().rev().find(|event| event["kind"] == "error.classified").unwrap();
        assert_eq!((&classified["fault"]["reason"], &classified["surface"]), (&json!(reason), &json!("llm")));
        assert_eq!((&classified["caller"], &classified["session"]), (&json!("tester/1.0"), &json!("s-1")));
        if reason == "auth_error" {
            let facts = &classified["fault"]["facts"];
            assert_eq!(
                (&facts["provider"], &facts["credential"]),
                (&json!("anthropic"), &json!("ANTHROPIC_API_KEY"))
            );
            assert!(facts["renewal"].as_str().unwrap().starts_with("https://"), "{facts}");
        }
        assert!(!project.run(&["explain", "last"]).go().code(0).stdout().contains("canary"));
    }
    // Nothing of the credential is in the store.
    let found = project.sh("grep -rl canary-secret-key . \"$BACKSTOP_STATE_DIR\" 2>/dev/null || true");
    assert_eq!(found.trim(), "");
}

#[test]
fn what_cannot_be_reached_is_tried_four_times_and_said_in_the_apis_shape() {
    let project = Project::new("proxy-gone");
    let gone = Provider::new(|_, _| Reply::Reset(Vec::new()));
    let proxy = ProxyProcess::start(&project, &gone, &[]);
    for (api, kind) in [(&APIS[0], "/error/type"), (&APIS[1], "/error/code"), (&APIS[3], "/error/status")] {
        let before = gone.seen().len();
        let answer = proxy.post(api.path, KEY, &api.request(false));
        assert_eq!((answer.status, answer.header("x-backstop-attempts")), (502, Some("4")), "{answer:?}");
        assert!(answer.json().pointer(kind).is_some_and(Value::is_string), "{answer:?}");
        assert_eq!(answer.header("x-backstop-reason"), Some("network_permanent"));
        assert_eq!(gone.seen().len() - before, 4);
    }
    // What is no answer of a model is none, and its client gets an error that it understands.
    let garbage = Provider::new(|n, _| {
        let bodies = ["", "garbage", "{\"id\": \"half", "OK"];
        Reply::Bytes(whole(200, "content-type: text/plain\r\n", bodies[n % 4]))
    });
    let other = Project::new("proxy-garbage");
    let odd = ProxyProcess::start(&other, &garbage, &[]);
    for api in [&APIS[0], &APIS[1], &APIS[3]] {
        let answer = odd.post(api.path, KEY, &api.request(false));
        assert_eq!((answer.status, answer.header("x-backstop-attempts")), (502, Some("4")), "{answer:?}");
        assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    }
    // A client that tries again by itself does not multiply that.
    let before = gone.seen().len();
    let headers = format!("{KEY}x-stainless-retry-count: 1\r\n");
    proxy.post("/v1/responses", &headers, &APIS[2].request(false));
    assert_eq!(gone.seen().len() - before, 1);
}

#[test]
fn strangers_and_bad_requests_are_refused() {
    let project = Project::new("proxy-bad");
    let provider = Provider::says(vec![ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let request = |head: &str| {
        format!("POST /v1/messages HTTP/1.1\r\n{head}content-length: 2\r\nconnection: close\r\n\r\n{{}}")
    };
    for (request, status) in [
        (request("host: evil.test\r\n"), 403),
        (request("host: localhost\r\n").replacen(" /", " http://evil.test/", 1), 403),
        (request("host: localhost\r\norigin: http://evil.test\r\n"), 403),
        (request(""), 403),
        (request("host: localhost\r\ncontent-length: 7\r\n"), 400),
        (request(&format!("host: localhost\r\nx-big: {}\r\n", "x".repeat(100_000))), 431),
        ("GARBAGE\r\n\r\n".to_owned(), 400),
        ("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n".to_owned(), 413),
        ("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(), 400),
    ] {
        let answer = proxy.raw(&request);
        assert_eq!(answer.status, status, "{}", &request[..request.len().min(80)]);
    }
    assert_eq!(provider.seen().len(), 0);
    // It still works.
    assert_eq!(proxy.post("/v1/messages", "", "{}").status, 200);

    // An endless body ends at the limit.
    let project = Project::new("proxy-endless");
    project.settings("[llm]\nbody_max = \"1MB\"\n");
    let small = ProxyProcess::start(&project, &provider, &[]);
    let mut stream = small.connect();
    stream
        .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    while stream.write_all(chunk.as_bytes()).is_ok() {}
    drop(stream);
    assert_eq!(small.post("/v1/messages", "", "{}").status, 200);
}

#[test]
fn a_command_gets_a_proxy_of_its_own() {
    let project = Project::new("proxy-exec");
    let provider = Provider::says(vec![failed(500, ""), ok()]);
    // The command's own base URL becomes the upstream.
    let script = r#"printf '%s\n' "$OPENAI_BASE_URL"; curl -s -o out.json -w '%{http_code}' -H 'content-type: application/json' -d '{"model":"m-1","messages":[]}' "$OPENAI_BASE_URL/chat/completions""#;
    let base = format!("{}/v1", provider.origin());
    let done = project.exec(&["--proxy"], script).env("OPENAI_BASE_URL", &base).go().code(0);
    assert!(
        done.stdout().starts_with("http://127.0.0.1:") && done.stdout().contains("/v1\n200"),
        "{}",
        done.stdout()
    );
    assert!(!done.stdout().starts_with(&base));
    assert_eq!(provider.seen().len(), 2);
    assert!(provider.seen()[0].head.starts_with("POST /v1/chat/completions"));

    let printed = project.run(&["proxy", "--env"]).go().code(0).stdout();
    assert!(printed.contains("export ANTHROPIC_BASE_URL=http://127.0.0.1:4141\n"), "{printed}");
    let as_json = project.run(&["proxy", "--env", "--json"]).go().code(0).json();
    fits(&schema("proxy-env"), &as_json, "proxy --env");
}

#[test]
fn budgets_caches_and_fallbacks() {
    let project = Project::new("proxy-limits");
    project.settings("[llm]\nbudget = \"calls\"\ncent_budget = \"money\"\nfallback = [\"m-1=m-2\"]\nprices = [\"m-=1000/1000\"]\n");
    project.run(&["budget", "set", "calls", "20"]).go().code(0);
    project.run(&["budget", "set", "money", "5", "--unit", "cents"]).go().code(0);
    let provider = Provider::new(|_, seen| {
        let model = seen.json()["model"].clone();
        Reply::Bytes(if model == "m-1" { failed(529, "") } else { ok() })
    });
    let proxy = ProxyProcess::start(&project, &provider, &["--cache"]);
    let request = r#"{"model":"m-1","temperature":0,"messages":[{"role":"user","content":"hi"}]}"#;
    let first = proxy.post("/v1/chat/completions", KEY, request);
    assert_eq!((first.status, first.header("x-backstop-changed")), (200, Some("model m-2")), "{first:?}");
    let models: Vec<Value> = provider.seen().iter().map(|seen| seen.json()["model"].clone()).collect();
    assert_eq!(models, ["m-1", "m-1", "m-1", "m-1", "m-2"], "a fallback gives no retries anew");
    // The answer of another model is not kept for this one; a request for that model has its own.
    let other = request.replace("m-1", "m-2");
    let kept = proxy.post("/v1/chat/completions", KEY, &other);
    assert_eq!((kept.status, kept.header("x-backstop-cache")), (200, None), "{kept:?}");
    assert_eq!(provider.seen().len(), 6);
    // The same again is answered from memory, and spends nothing.
    let again = proxy.post("/v1/chat/completions", KEY, &other);
    assert_eq!((again.status, again.header("x-backstop-cache"), &again.body), (200, Some("hit"), &kept.body));
    assert_eq!(provider.seen().len(), 6);
    let changed = proxy.post("/v1/chat/completions", KEY, request);
    assert_eq!(
        (changed.header("x-backstop-cache"), changed.header("x-backstop-changed")),
        (None, Some("model m-2")),
        "{changed:?}"
    );
    let sent = provider.seen().len();
    // 10 tokens at 1000 dollars a million are one cent.
    let status = project.run(&["budget", "status", "--json"]).go().code(0).json();
    let left = |name: &str| {
        let all = status["budgets"].as_array().unwrap();
        all.iter().find(|row| row["budget"] == name).unwrap()["remaining"].clone()
    };
    assert_eq!(left("calls"), json!(20 - sent), "{status}");
    assert_eq!(left("money"), json!(2), "three answers were paid for: {status}");
    let refused = |n: usize| {
        let fresh = other.replace("hi", &format!("number {n}"));
        let answer = proxy.post("/v1/chat/completions", KEY, &fresh);
        answer.header("x-backstop-reason") == Some("budget_exhausted") && answer.status == 403
    };
    assert_eq!([0, 1, 2].map(refused), [false, false, true]);
    assert_eq!(provider.seen().len(), sent + 2);
    // What it cost is counted, too.
    assert_eq!(proxy.end(), 0);
    let stats = project.run(&["stats", "--json"]).go().code(0).json();
    let row = stats["models"].as_array().unwrap().iter().find(|row| row["model"] == "m-2").unwrap();
    assert_eq!((&row["tokens_in"], &row["cost_millionths"]), (&json!(35), &json!(50_000)), "{stats}");
}

/// A provider that takes four requests a second, in fixed windows since its start, and refuses
/// more.
fn four_a_second() -> Provider {
    const LIMIT: usize = 4;
    let window = Duration::from_secs(1);
    let began = std::time::Instant::now();
    let counted: std::sync::Mutex<Vec<std::time::Instant>> = std::sync::Mutex::default();
    Provider::new(move |_, seen| {
        let number = |at: std::time::Instant| at.duration_since(began).as_millis() / window.as_millis();
        let mut counted = counted.lock().unwrap();
        let used = counted.iter().filter(|at| number(**at) == number(seen.at)).count();
        let reset = window.as_millis() - seen.at.duration_since(began).as_millis() % window.as_millis();
        let headers = format!(
            "x-ratelimit-limit-requests: {LIMIT}\r\nx-ratelimit-remaining-requests: {}\r\nx-ratelimit-reset-requests: {reset}ms\r\n",
            LIMIT.saturating_sub(used + 1)
        );
        if used >= LIMIT {
            return Reply::Bytes(failed(429, &headers));
        }
        counted.push(seen.at);
        Reply::Bytes(json(200, &headers, &json!({"choices": [{"message": {"content": "hi"}}]})))
    })
}

#[test]
fn sixteen_clients_behind_one_limit_never_send_more_than_it_allows() {
    let provider = four_a_second();
    let project = Project::new("proxy-sixteen");
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| proxy.post("/v1/chat/completions", KEY, &APIS[1].request(false)).status))
            .collect();
        for client in clients {
            assert_eq!(client.join().unwrap(), 200);
        }
    });
    assert_eq!(provider.seen().len(), 16, "requests were sent that the limit did not allow");
}

#[test]
fn sixteen_processes_behind_one_limit_never_send_more_than_it_allows() {
    let provider = four_a_second();
    let project = Project::new("proxy-sixteen-processes");
    let script = r#"curl -s -o /dev/null -w '%{http_code}' -H 'content-type: application/json' -H 'authorization: Bearer sk-one' -d '{"model":"m-1","messages":[]}' "$OPENAI_BASE_URL/chat/completions""#;
    let base = format!("{}/v1", provider.origin());
    std::thread::scope(|scope| {
        let commands: Vec<_> = (0..16)
            .map(|_| {
                let run = project.exec(&["--proxy"], script).env("OPENAI_BASE_URL", &base);
                scope.spawn(move || run.go().code(0).stdout())
            })
            .collect();
        for command in commands {
            assert_eq!(command.join().unwrap(), "200");
        }
    });
    assert_eq!(provider.seen().len(), 16, "requests were sent that the limit did not allow");
}

#[test]
fn a_client_that_waits_for_a_limit_is_kept_from_giving_up() {
    let project = Project::new("proxy-keep-alive");
    let api = &APIS[0];
    // Longer than the time after which a client hears something: a real wait, once for both.
    let waits = Provider::new(|n, _| {
        Reply::Bytes(if n == 0 { failed(429, "retry-after: 17\r\n") } else { stream(&APIS[0].events()) })
    });
    let thinks = Provider::new(|_, _| {
        let chunk = |events: &str| format!("{:x}\r\n{events}\r\n", events.len());
        let ping = "event: ping\ndata: {\"type\":\"ping\",\"theirs\":1}\n\n";
        let begin = format!("{STREAM_HEAD}{}", chunk(APIS[0].preamble));
        let end = format!("{}0\r\n\r\n", chunk(&format!("{}{}", APIS[0].content, APIS[0].end)));
        let pieces = [begin, chunk(ping), end].map(String::into_bytes).to_vec();
        Reply::Drip(pieces, Duration::from_millis(8500))
    });
    // What goes wrong after that has no status any more.
    let denied = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let fails = Provider::new(|n, _| {
        Reply::Bytes(match n {
            0 => failed(429, "retry-after: 17\r\n"),
            _ => whole(401, "content-type: application/json\r\n", denied),
        })
    });
    let beside = ["thinks", "fails"].map(|name| Project::new(&format!("proxy-keep-alive-{name}")));
    let first = ProxyProcess::start(&project, &waits, &[]);
    let second = ProxyProcess::start(&beside[0], &thinks, &[]);
    let third = ProxyProcess::start(&beside[1], &fails, &[]);
    let post = |proxy: &ProxyProcess| proxy.post(api.stream_path, KEY, &api.request(true));
    let (limited, thinking, failing) = std::thread::scope(|scope| {
        let (thinking, failing) = (scope.spawn(|| post(&second)), scope.spawn(|| post(&third)));
        (post(&first), thinking.join().unwrap(), failing.join().unwrap())
    });
    assert_eq!((failing.status, failing.complete, fails.seen().len()), (200, true, 2));
    assert!(failing.body.ends_with(&format!("event: error\ndata: {denied}\n\n")), "{failing:?}");
    for answer in [&limited, &thinking] {
        assert_eq!((answer.status, answer.complete), (200, true));
        let ours = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
        assert!(answer.body.starts_with(ours) && answer.body.ends_with(api.end), "{answer:?}");
    }
    assert_eq!(thinks.seen().len(), 1);
}

#[test]
fn a_token_is_asked_for_and_kept_from_the_provider() {
    let project = Project::new("proxy-token");
    let provider = Provider::says(vec![ok()]);
    let done = project.run(&["proxy", "--listen", "0.0.0.0:0"]).go().code(2);
    assert!(done.stderr().contains("other machines"), "{}", done.stderr());
    let origin = format!("openai={}", provider.origin());
    let mut command = project
        .run(&["proxy", "--listen", "127.0.0.1:0", "--upstream", &origin, "--token-env", "T"])
        .env("T", "long-random-token")
        .command();
    command.stderr(std::process::Stdio::piped());
    let proxy = ProxyProcess::spawn(command);
    assert_eq!(proxy.post("/v1/chat/completions", "", "{}").status, 401);
    let answer = proxy.post(
        "/v1/chat/completions",
        "x-backstop-token: long-random-token\r\nauthorization: Bearer mine\r\n",
        "{}",
    );
    assert_eq!(answer.status, 200);
    let head = &provider.seen()[0].head;
    assert!(head.contains("Bearer mine") && !head.contains("long-random-token"), "{head}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_reads_nothing_holds_up_the_provider() {
    const PIECES: usize = 64;
    let project = Project::new("proxy-slow-client");
    let api = &APIS[1];
    let chunk = |events: &str| format!("{:x}\r\n{events}\r\n", events.len()).into_bytes();
    // A megabyte each.
    let events = api.content.replace("hi", &"word ".repeat(20_000)).repeat(10);
    let mut pieces = vec![STREAM_HEAD.as_bytes().to_vec()];
    pieces.extend(std::iter::repeat_n(chunk(&events), PIECES));
    pieces.push([chunk(api.end), b"0\r\n\r\n".to_vec()].concat());
    let provider = Provider::new(move |_, _| Reply::Drip(pieces.clone(), Duration::ZERO));
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let before = proxy.peak();
    let mut stream = proxy.connect();
    let body = api.request(true);
    write!(
        stream,
        "POST {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        api.path,
        body.len()
    )
    .unwrap();
    let mut seen = 0;
    until("nothing moves any more", || {
        // Long enough for the next piece, wherever there is room for one.
        std::thread::sleep(Duration::from_millis(500));
        let now = provider.pieces_written();
        std::mem::replace(&mut seen, now) == now && now > 0
    });
    assert!(seen < PIECES, "all of it was taken from the provider, and nobody has read it");
    let more = proxy.peak() - before;
    assert!(more < events.len() * PIECES / 4, "{more} bytes in memory");
    let answer = Answered::read(&mut stream);
    assert!(answer.complete, "{} bytes", answer.body.len());
    assert_eq!(answer.body.len(), events.len() * PIECES + api.end.len());
}

#[test]
fn a_client_that_hangs_up_ends_the_request_upstream() {
    let project = Project::new("proxy-hang-up");
    let provider = Provider::new(|_, _| Reply::Silence);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let mut stream = proxy.connect();
    let body = APIS[0].request(true);
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    until("the request has arrived", || provider.seen().len() == 1);
    assert_eq!(provider.hung_up(), 0);
    drop(stream);
    until("the provider is hung up on", || provider.hung_up() == 1);
}

#[test]
fn a_base_url_keeps_its_path_and_its_host() {
    let project = Project::new("proxy-base-url");
    let provider = Provider::says(vec![ok()]);
    let script = r#"post() { curl -sf -o out.json -H 'content-type: application/json' -d '{"model":"m-1","messages":[]}' "$1"; }
        post "$OPENAI_BASE_URL/chat/completions" && post "$ANTHROPIC_BASE_URL/v1/messages""#;
    let run = project.exec(&["--proxy"], script);
    let run = run.env("OPENAI_BASE_URL", &format!("{}/openai/v1/", provider.origin()));
    run.env("ANTHROPIC_BASE_URL", &format!("{}/anthropic", provider.origin())).go().code(0);
    let paths: Vec<String> =
        provider.seen().iter().filter_map(|seen| Some(seen.head.split(' ').nth(1)?.to_owned())).collect();
    assert_eq!(paths, ["/openai/v1/chat/completions", "/anthropic/v1/messages"]);

    // A proxy that runs sends requests to its own upstreams: nobody else's credential goes there.
    let env = |flags: &[&str]| {
        let args = [&["proxy", "--env"][..], flags].concat();
        project.run(&args).env("OPENAI_BASE_URL", "https://router.example.com/api/v1").go().code(0)
    };
    let left = env(&[]);
    assert!(!left.stdout().contains("OPENAI_BASE_URL"), "{}", left.stdout());
    assert!(left.stdout().contains("export OPENAI_API_BASE=http://127.0.0.1:4141/v1\n"), "{}", left.stdout());
    let words = left.stderr();
    assert!(words.contains("OPENAI_BASE_URL is left alone"), "{words}");
    assert!(words.contains("--upstream openai=https://router.example.com`"), "{words}");
    let known = env(&["--upstream", "openai=https://router.example.com"]);
    assert!(
        known.stdout().contains("OPENAI_BASE_URL=http://127.0.0.1:4141/openai/api/v1\n"),
        "{}",
        known.stdout()
    );
    assert_eq!(known.stderr(), "");
    project.settings("[llm.upstream.router]\nurl = \"https://router.example.com\"\nheaders.authorization = \"Bearer ${NOT_SET_HERE}\"\n");
    let named = env(&[]);
    assert!(
        named.stdout().contains("OPENAI_BASE_URL=http://127.0.0.1:4141/router/api/v1\n"),
        "{}",
        named.stdout()
    );
}

#[test]
fn a_path_goes_to_the_upstream_that_has_it() {
    let project = Project::new("proxy-paths");
    let [anthropic, openai, local] = [(); 3].map(|()| Provider::says(vec![ok()]));
    let upstreams = [("anthropic", &anthropic), ("openai", &openai), ("local", &local)]
        .map(|(name, provider)| format!("{name}={}", provider.origin()));
    let mut args = vec!["proxy", "--listen", "127.0.0.1:0"];
    args.extend(upstreams.iter().flat_map(|upstream| ["--upstream", upstream.as_str()]));
    let proxy = ProxyProcess::with(&project, &args);
    for (path, provider, arrives) in [
        ("/v1/threads/thread_1/messages", &openai, "POST /v1/threads/thread_1/messages "),
        ("/v1/responses/resp_1/cancel", &openai, "POST /v1/responses/resp_1/cancel "),
        ("/api/v1/messages", &anthropic, "POST /api/v1/messages "),
        ("/v1/messages/count_tokens", &anthropic, "POST /v1/messages/count_tokens "),
        ("/local/v1/chat/completions", &local, "POST /v1/chat/completions "),
        ("/local/v1/messages?beta=true", &local, "POST /v1/messages?beta=true "),
    ] {
        let before = provider.seen().len();
        let body = r#"{ "model":"m-1","messages":[] }"#;
        let answer = proxy.post(path, KEY, body);
        assert_eq!((answer.status, provider.seen().len() - before), (200, 1), "{path}: {answer:?}");
        let seen = provider.seen().pop().unwrap();
        assert!(seen.head.starts_with(arrives), "{path}: {}", seen.head);
        assert_eq!(String::from_utf8_lossy(&seen.body), body);
    }
}

#[test]
fn a_stream_is_over_with_its_last_event_and_not_before() {
    let project = Project::new("proxy-last-event");
    for api in &APIS {
        for reply in [Reply::Bytes(cut_stream(&api.events())), Reply::Reset(cut_stream(&api.events()))] {
            let provider = Provider::new(move |_, _| reply.clone());
            let proxy = ProxyProcess::start(&project, &provider, &[]);
            let answer = proxy.post(api.stream_path, KEY, &api.request(true));
            assert_eq!(
                (answer.body.as_str(), answer.complete),
                (api.events().as_str(), true),
                "{}",
                api.name
            );
            assert_eq!(proxy.end(), 0);
        }
    }
    assert_eq!(runs(&project).len(), 0, "nothing has failed");
    let chat = |index: u8, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let gemini = |index: u8, finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"index\":{index},\"content\":{{\"parts\":[{{\"text\":\"hi\"}}]}}{finish}}}]}}\n\n"
        )
    };
    let of_chat = [chat(0, "null"), chat(1, "null"), chat(0, "\"stop\""), chat(1, "null")].concat();
    let of_gemini = [gemini(0, ""), gemini(1, ""), gemini(0, ",\"finishReason\":\"STOP\"")].concat();
    for (api, begun) in [(&APIS[1], of_chat), (&APIS[3], of_gemini)] {
        for reply in [cut_stream(&begun), stream(&begun)] {
            let provider = Provider::says(vec![reply]);
            let proxy = ProxyProcess::start(&project, &provider, &[]);
            let answer = proxy.post(api.stream_path, KEY, &api.request(true));
            let error = answer.body.strip_prefix(begun.as_str()).unwrap_or_else(|| panic!("{answer:?}"));
            assert!(error.starts_with(api.error_event), "{}: {answer:?}", api.name);
        }
    }
}

#[test]
fn an_error_right_behind_the_first_content_is_recorded() {
    for api in &APIS {
        let project = Project::new(&format!("proxy-error-behind-{}", api.name));
        let events = format!("{}{}{}", api.preamble, api.content, hidden_error(api));
        let provider = Provider::says(vec![stream(&events)]);
        let proxy = ProxyProcess::start(&project, &provider, &[]);
        let answer = proxy.post(api.stream_path, KEY, &api.request(true));
        assert_eq!((answer.status, answer.body.as_str()), (200, events.as_str()), "{}", api.name);
        assert_eq!(proxy.end(), 0);
        let all = runs(&project);
        assert!(all.len() == 1 && all[0]["outcome"] == "failed", "{}: {all:?}", api.name);
    }
}

#[test]
fn a_growing_list_is_kept_whole() {
    let project = Project::new("proxy-growing-list");
    let part = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#;
    let list = format!("[{part},{part},{part}]");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n[",
        list.len()
    );
    let pieces: Vec<Vec<u8>> =
        [head, format!("{part},"), format!("{part},"), format!("{part}]")].map(String::into_bytes).to_vec();
    let provider = Provider::new(move |_, _| Reply::Drip(pieces.clone(), Duration::from_millis(30)));
    let proxy = ProxyProcess::start(&project, &provider, &["--cache"]);
    let request = r#"{"contents":[],"generationConfig":{"temperature":0}}"#;
    let post = || proxy.post("/v1beta/models/gemini-x:streamGenerateContent", KEY, request);
    assert_eq!(post().body, list);
    let again = post();
    assert_eq!((again.header("x-backstop-cache"), again.body.as_str()), (Some("hit"), list.as_str()));
    assert_eq!(provider.seen().len(), 1);
}

#[test]
fn a_compressed_stream_passes_unread() {
    let project = Project::new("proxy-compressed");
    let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let provider = Provider::says(vec![whole(200, headers, "compressed bytes")]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    for api in &APIS {
        let answer = proxy.post(api.stream_path, KEY, &api.request(true));
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "compressed bytes"),
            "{}: {answer:?}",
            api.name
        );
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
    }
    assert_eq!(provider.seen().len(), APIS.len());
}

#[test]
fn an_overflow_that_no_trimming_cures_is_said_with_numbers() {
    let project = Project::new("proxy-fixed-overflow");
    let words = "prompt is too long: 213462 tokens > 200000 maximum";
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
    let provider = Provider::says(vec![json(400, "request-id: r1\r\n", &error)]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let turns = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    let request = json!({"model": "m-1", "system": "word ".repeat(4000), "messages": turns});
    let answer = proxy.post("/v1/messages", KEY, &request.to_string());
    assert_eq!((answer.status, answer.header("request-id"), provider.seen().len()), (400, Some("r1"), 1));
    let error = &answer.json()["error"];
    assert_eq!(error["type"], "invalid_request_error");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with(words) && message.contains("instructions and tools alone are about 21"),
        "{message}"
    );
    assert!(message.contains("the model takes 200000"), "{message}");
}

#[test]
fn an_answer_that_does_not_fit_is_made_smaller_before_turns_go() {
    let project = Project::new("proxy-max-tokens");
    let words = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again";
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
    let provider = Provider::says(vec![json(400, "", &error), ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let turns = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    let request = json!({"model": "m-1", "max_tokens": 21333, "messages": turns});
    let answer = proxy.post("/v1/messages", KEY, &request.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let second = provider.seen()[1].json();
    assert_eq!((&second["max_tokens"], &second["messages"]), (&json!(9760), &turns), "{second}");
}

#[test]
fn a_budget_in_tokens_refuses_once_it_is_used_up() {
    let project = Project::new("proxy-tokens");
    project.settings("[llm]\ntoken_budget = \"tokens\"\n");
    project.run(&["budget", "set", "tokens", "15", "--unit", "tokens"]).go().code(0);
    let provider = Provider::says(vec![ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    // Each answer has used ten: the second takes what is left.
    let posted = [(); 3].map(|()| proxy.post("/v1/chat/completions", KEY, &APIS[1].request(false)));
    assert_eq!(posted.each_ref().map(|answer| answer.status), [200, 200, 403]);
    assert_eq!(posted[2].header("x-backstop-reason"), Some("budget_exhausted"));
    assert_eq!(provider.seen().len(), 2);
}

#[test]
fn an_overflow_that_comes_as_a_server_error_is_trimmed() {
    let words = "prompt is too long: 213462 tokens > 200000 maximum";
    let body = json!({"type": "error", "error": {"type": "api_error", "message": words}});
    let provider = Provider::says(vec![json(500, "", &body), ok()]);
    let project = Project::new("proxy-overflow-500");
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let turn = |n: usize| json!({"role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("turn {n} {}", "x".repeat(200))});
    let request = json!({"model": "m-1", "max_tokens": 10, "messages": (0..9).map(turn).collect::<Vec<_>>()});
    let answer = proxy.post("/v1/messages", KEY, &request.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = provider.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[1].body.len() < seen[0].body.len());
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_request_is_in_memory_once() {
    const LARGE: usize = 30 << 20;
    let provider = Provider::says(vec![ok()]);
    let project = Project::new("proxy-large");
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let request = |bytes: usize| {
        json!({"model": "m-1", "messages": [{"role": "user", "content": "x".repeat(bytes)}]}).to_string()
    };
    assert_eq!(proxy.post("/v1/messages", KEY, &request(10)).status, 200);
    let before = proxy.peak();
    assert_eq!(proxy.post("/v1/messages", KEY, &request(LARGE)).status, 200);
    assert_eq!(provider.seen()[1].body.len(), request(LARGE).len());
    let more = proxy.peak() - before;
    assert!((LARGE / 2..LARGE * 3 / 2).contains(&more), "{more} bytes for a request of {LARGE}");
}

#[test]
fn errors_in_the_wrong_place_are_seen_for_what_they_are() {
    let project = Project::new("proxy-wrong-place");
    // In a whole answer with status 200.
    let hidden = json!({"error": {"message": "The server had an error while processing your request", "type": "server_error"}});
    let provider = Provider::says(vec![json(200, "", &hidden), ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/chat/completions", KEY, &APIS[1].request(false));
    assert_eq!((answer.status, answer.header("x-backstop-attempts")), (200, Some("2")), "{answer:?}");
    assert_eq!(answer.json()["id"], "x");
    // An overflow with status 500.
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}});
    let provider = Provider::says(vec![json(500, "", &error), ok()]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let turns: Vec<Value> = (0..21)
        .map(|n| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": "word ".repeat(100)}))
        .collect();
    let answer = proxy.post("/v1/messages", KEY, &json!({"model": "m-1", "messages": turns}).to_string());
    let changed = answer.header("x-backstop-changed").unwrap_or_default();
    assert!(answer.status == 200 && changed.starts_with("removed "), "{answer:?}");
    assert_eq!(provider.seen().len(), 2);
    // A key in the query is a secret like any other.
    let refusal =
        json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}});
    let provider = Provider::says(vec![json(400, "", &refusal)]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let path = format!("{}?key=canary-secret-key-in-a-query", APIS[3].path);
    assert_eq!(proxy.post(&path, "", &APIS[3].request(false)).status, 400);
    assert!(provider.seen()[0].head.contains("canary-secret-key-in-a-query"));
    assert_eq!(proxy.end(), 0);
    assert!(project.kinds().contains(&"error.classified".to_owned()));
    let found = project.sh("grep -rl canary-secret-key . \"$BACKSTOP_STATE_DIR\" 2>/dev/null || true");
    assert_eq!(found.trim(), "");
}

#[test]
fn a_rate_limit_is_tried_five_times_and_then_another_model() {
    let project = Project::new("proxy-429-five");
    let provider = Provider::says(vec![failed(429, "retry-after-ms: 20\r\n")]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/messages", KEY, &APIS[0].request(false));
    assert_eq!((answer.status, answer.header("x-backstop-attempts")), (429, Some("5")), "{answer:?}");
    assert_eq!((provider.seen().len(), answer.header("x-should-retry")), (5, Some("false")));

    let project = Project::new("proxy-429-fallback");
    project.settings("[llm]\nfallback = [\"m-1=m-2\"]\n");
    let provider = Provider::new(|_, seen| {
        Reply::Bytes(if seen.json()["model"] == "m-1" { failed(429, "retry-after: 7999\r\n") } else { ok() })
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let answer = proxy.post("/v1/chat/completions", KEY, &APIS[1].request(false));
    assert_eq!((answer.status, answer.header("x-backstop-changed")), (200, Some("model m-2")), "{answer:?}");
    assert_eq!(provider.seen().len(), 2);
}

#[test]
fn an_upstream_gets_no_more_at_once_than_its_settings_say() {
    let project = Project::new("proxy-concurrency");
    project.settings("[llm.upstream.openai]\nconcurrency = 2\n");
    let (now, most) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let peak = Arc::clone(&most);
    let provider = Provider::new(move |_, _| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        now.fetch_sub(1, Ordering::SeqCst);
        Reply::Bytes(ok())
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = proxy.post("/v1/chat/completions", KEY, &APIS[1].request(false));
                assert_eq!(answer.status, 200);
            });
        }
    });
    let most = most.load(Ordering::SeqCst);
    assert!(provider.seen().len() == 8 && most <= 2, "{most} at once");
}

#[test]
fn a_breaker_is_for_one_model() {
    let project = Project::new("proxy-breaker");
    let provider = Provider::new(|_, seen| {
        Reply::Bytes(if seen.json()["model"] == "m-1" { failed(503, "") } else { ok() })
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let post = |model: &str| {
        let request = APIS[1].request(false).replace("m-1", model);
        proxy.post("/v1/chat/completions", KEY, &request)
    };
    // Four attempts each: the second request is the last one that is sent, if all of it is.
    for _ in 0..2 {
        assert!(post("m-1").status >= 500);
    }
    let before = provider.seen().len();
    let refused = post("m-1");
    assert_eq!((refused.status, provider.seen().len() - before), (503, 0), "{refused:?}");
    assert_eq!(post("m-2").status, 200);
}
