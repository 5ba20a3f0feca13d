//! One request of a client: what it asks for, whose it is, and as what it is passed on.

use super::route::{Operation, Route, query};
use crate::Api;
use backstop_core::SafeText;
use backstop_http::{Chunk, Headers, Method};
use backstop_runtime::admission::RequestIdentity;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Headers that are for this proxy, or for one hop, and not for the upstream.
const NOT_PASSED_ON: [&str; 6] = [
    "accept-encoding",
    "x-backstop-token",
    "x-backstop-caller",
    "x-backstop-session",
    "proxy-authorization",
    "origin",
];
/// Where clients say which session a request belongs to, first one first.
pub const SESSION_HEADERS: [&str; 6] = [
    "x-backstop-session",
    "x-claude-code-session-id",
    "session_id",
    "x-opencode-session",
    "x-session-affinity",
    "x-session-id",
];
/// Where credentials are.
const CREDENTIAL_HEADERS: [&str; 4] = ["x-api-key", "authorization", "x-goog-api-key", "api-key"];
/// The header in which SDKs count their own retries.
const CLIENT_RETRIES: &str = "x-stainless-retry-count";

/// One request of a client.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) route: Route,
    pub(super) method: Method,
    pub(super) headers: Headers,
    pub(super) body: Chunk,
    pub(super) model: Option<String>,
    /// Whether the answer is a stream of events.
    pub(super) streams: bool,
    /// How often the client has tried already.
    pub(super) client_retries: u32,
    pub(super) caller: Option<SafeText>,
    pub(super) session: Option<SafeText>,
    pub(super) credential: Option<String>,
}

/// What is read of a request's body; everything else is passed over.
#[derive(Deserialize)]
struct Head<'b> {
    #[serde(borrow, default)]
    model: Option<Cow<'b, str>>,
    #[serde(default)]
    stream: Option<Value>,
}

impl Call {
    pub(super) fn new(route: Route, method: Method, given: &Headers, body: Chunk) -> Self {
        let text = |name: &str| given.text(name).filter(|text| !text.is_empty());
        let safe = |name: &str| text(name).map(SafeText::new);
        let caller = safe("x-backstop-caller")
            .or_else(|| text("user-agent").and_then(|agent| agent.split(' ').next()).map(SafeText::new));
        let session = SESSION_HEADERS.iter().find_map(|name| safe(name));
        let mut headers = given.passed_on(&NOT_PASSED_ON);
        for (name, value) in route.upstream.headers.iter() {
            let _ = headers.set_secret(name, value);
        }
        let credential = CREDENTIAL_HEADERS.iter().find_map(|name| headers.text(name));
        let credential = credential.or_else(|| query(&route.target, "key")).map(str::to_owned);
        let path = route.target.split('?').next().unwrap_or_default();
        let (model, streams) = match route.operation {
            Operation::Other => (None, false),
            Operation::Generate(Api::Gemini) | Operation::About(Api::Gemini) => {
                let model = path.rsplit('/').next().and_then(|last| last.split(':').next());
                let streams =
                    path.ends_with(":streamGenerateContent") && query(&route.target, "alt") == Some("sse");
                (model.map(str::to_owned), streams)
            }
            Operation::Generate(_) | Operation::About(_) => {
                let head: Option<Head<'_>> = serde_json::from_slice(&body).ok();
                let streams = head.as_ref().is_some_and(|head| head.stream == Some(Value::Bool(true)));
                (head.and_then(|head| head.model).map(Cow::into_owned), streams)
            }
        };
        let client_retries = text(CLIENT_RETRIES).and_then(|count| count.parse().ok()).unwrap_or(0);
        Self { route, method, headers, body, model, streams, client_retries, caller, session, credential }
    }

    /// The API, for errors in its shape.
    pub(super) fn api(&self) -> Api {
        self.route.operation.api().unwrap_or(Api::Chat)
    }

    /// Whether its conversation can be made smaller.
    pub(super) fn is_model_request(&self) -> bool {
        matches!(self.route.operation, Operation::Generate(_))
    }

    /// What it is called in the journal: no part of it is a secret.
    pub(super) fn name(&self) -> String {
        let path = self.route.target.split('?').next().unwrap_or_default();
        let model = self.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
        format!("{} {}{path}{model}", self.method.as_str(), self.route.upstream.name)
    }

    pub(super) fn identity(&self) -> RequestIdentity {
        RequestIdentity { credential: self.credential.clone(), model: self.model.clone() }
    }

    /// The path and the body for another model of the same API.
    pub(super) fn for_model(&self, model: &str, body: &[u8]) -> (String, Option<Vec<u8>>) {
        if self.api() == Api::Gemini {
            let target = match &self.model {
                Some(own) => self.route.target.replacen(&format!("/{own}:"), &format!("/{model}:"), 1),
                None => self.route.target.clone(),
            };
            return (target, None);
        }
        (self.route.target.clone(), crate::trim::with_member(body, "model", &Value::from(model)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::{route, tests::usual};
    use super::*;

    fn call(target: &str, headers: &[(&str, &str)], body: &str) -> Call {
        let mut given = Headers::new();
        for (name, value) in headers {
            given.add(name, value).unwrap();
        }
        let route = route(&usual(), &Method::POST, target, &given).unwrap();
        Call::new(route, Method::POST, &given, body.as_bytes().to_vec().into())
    }

    #[test]
    fn model_stream_session_and_credential_are_read() {
        let one = call(
            "/v1/messages",
            &[
                ("x-api-key", "k"),
                ("user-agent", "claude-cli/2.1 (x)"),
                ("session_id", "s"),
                ("accept-encoding", "gzip"),
                ("x-stainless-retry-count", "2"),
            ],
            r#"{"model":"claude-x","stream":true,"messages":[]}"#,
        );
        assert_eq!((one.model.as_deref(), one.streams, one.client_retries), (Some("claude-x"), true, 2));
        assert_eq!(one.caller.as_ref().unwrap().raw(), "claude-cli/2.1");
        assert_eq!((one.session.as_ref().unwrap().raw(), one.credential.as_deref()), ("s", Some("k")));
        assert!(!one.headers.contains("accept-encoding") && one.headers.contains("x-api-key"));
        assert_eq!(one.name(), "POST anthropic/v1/messages claude-x");
        let gemini = call("/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=secret", &[], "{}");
        assert_eq!((gemini.model.as_deref(), gemini.streams), (Some("gemini-x"), true));
        assert!(!gemini.name().contains("secret"));
        assert_eq!(gemini.credential.as_deref(), Some("secret"), "accounts are told apart by it");
        let (target, body) = gemini.for_model("gemini-y", b"{}");
        assert_eq!(
            (target.as_str(), body),
            ("/v1beta/models/gemini-y:streamGenerateContent?alt=sse&key=secret", None)
        );
        let (_, body) = one.for_model("claude-y", &one.body);
        assert_eq!(body.unwrap(), br#"{"model":"claude-y","stream":true,"messages":[]}"#);
        let garbage = call("/v1/messages", &[], "garbage");
        assert_eq!((garbage.model, garbage.streams), (None, false));
    }
}
