//! Where a request goes: the path names its API, and with that the upstream; `/NAME/…` names the
//! upstream itself.

use crate::Api;
use backstop_core::Name;
use backstop_http::{Address, AddressError, Headers, Method};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The providers that are known without settings.
const USUAL: [(&str, &str); 3] = [
    ("anthropic", "https://api.anthropic.com"),
    ("openai", "https://api.openai.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
];

/// A provider, or something that speaks like one.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Its name, by which guards, breakers and paths know it.
    pub name: Name,
    /// Where it is.
    pub origin: Address,
    /// Headers of every request to it, such as its credential. They replace the client's.
    pub headers: Headers,
    /// How many requests it gets at once.
    pub(super) slots: Option<Arc<Semaphore>>,
}

/// Why an upstream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The name is none.
    #[error("`{0}` is no name of an upstream")]
    Name(String),
    /// The address is none.
    #[error("the address of upstream `{name}` {error}")]
    Address {
        /// The upstream.
        name: String,
        /// What is wrong with its address.
        error: AddressError,
    },
    /// The address has a path or a query.
    #[error("the address of upstream `{0}` has a path: requests bring their own")]
    Path(String),
}

impl Upstream {
    /// An upstream at an origin, such as `https://api.example.com`.
    pub fn new(name: &str, origin: &str) -> Result<Self, UpstreamError> {
        let parsed = name.parse().map_err(|_| UpstreamError::Name(name.to_owned()))?;
        let address = Address::parse(origin)
            .map_err(|error| UpstreamError::Address { name: name.to_owned(), error })?;
        if address.path_and_query() != "/" {
            return Err(UpstreamError::Path(name.to_owned()));
        }
        Ok(Self { name: parsed, origin: address, headers: Headers::new(), slots: None })
    }

    /// The upstreams that are known without settings.
    pub fn usual() -> Vec<Self> {
        USUAL.iter().filter_map(|(name, origin)| Self::new(name, origin).ok()).collect()
    }

    /// With at most so many requests at once.
    pub fn concurrency(mut self, most: Option<usize>) -> Self {
        self.slots = most.map(|most| Arc::new(Semaphore::new(most)));
        self
    }
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// A model request, which is recovered.
    Generate(Api),
    /// Something about a request, such as its size in tokens: bytes pass, limits count.
    About(Api),
    /// Anything else: bytes pass.
    Other,
}

impl Operation {
    fn of(method: &Method, path: &str) -> Self {
        // The same paths list or read what is stored, by other methods.
        if *method != Method::POST {
            return Self::Other;
        }
        let path = path.trim_end_matches('/');
        match path {
            // OpenAI has messages too, below the id of a thread.
            _ if path.ends_with("/v1/messages/count_tokens") => Self::About(Api::Anthropic),
            _ if path.ends_with("/v1/messages") => Self::Generate(Api::Anthropic),
            _ if path.ends_with("/chat/completions") => Self::Generate(Api::Chat),
            _ if path.ends_with("/responses") => Self::Generate(Api::Responses),
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Self::Generate(Api::Gemini)
            }
            _ if path.ends_with(":countTokens") => Self::About(Api::Gemini),
            _ => Self::Other,
        }
    }

    pub(super) fn api(self) -> Option<Api> {
        match self {
            Self::Generate(api) | Self::About(api) => Some(api),
            Self::Other => None,
        }
    }
}

/// Where a request goes, and as what.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) upstream: Arc<Upstream>,
    pub(super) operation: Operation,
    /// The path and query that the upstream gets.
    pub(super) target: String,
}

/// Finds where a request goes; none where no upstream fits.
pub(super) fn route(
    upstreams: &[Arc<Upstream>],
    method: &Method,
    target: &str,
    headers: &Headers,
) -> Option<Route> {
    let named = target.strip_prefix('/').and_then(|rest| {
        let (name, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let upstream = upstreams.iter().find(|upstream| upstream.name.as_str() == name)?;
        let target = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        Some((upstream, target))
    });
    let (upstream, target) = match named {
        Some((upstream, target)) => (Some(upstream), target),
        None => (None, target.to_owned()),
    };
    let operation = Operation::of(method, target.split('?').next().unwrap_or_default());
    let usual = || {
        let name = match operation.api() {
            Some(Api::Anthropic) => "anthropic",
            Some(Api::Chat | Api::Responses) => "openai",
            Some(Api::Gemini) => "gemini",
            // Paths such as /v1/models are the same everywhere: the credential tells.
            None if headers.contains("anthropic-version") || headers.contains("x-api-key") => "anthropic",
            None if headers.contains("x-goog-api-key") || query(&target, "key").is_some() => "gemini",
            None => "openai",
        };
        upstreams.iter().find(|upstream| upstream.name.as_str() == name)
    };
    Some(Route { upstream: Arc::clone(upstream.or_else(usual)?), operation, target })
}

/// Whether a path has steps such as `..`, which nobody can pass on as they are.
pub(super) fn has_dot_segments(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    path.split(['/', '\\']).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

/// The value of a parameter in the query of a target, as it is written there.
pub(super) fn query<'t>(target: &'t str, name: &str) -> Option<&'t str> {
    let (_, query) = target.split_once('?')?;
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::proxy) fn usual() -> Vec<Arc<Upstream>> {
        Upstream::usual().into_iter().map(Arc::new).collect()
    }

    #[test]
    fn the_path_names_the_upstream() {
        let mut upstreams = usual();
        let local = Arc::new(Upstream::new("local", "http://127.0.0.1:9").unwrap());
        upstreams.push(Arc::clone(&local));
        let none = Headers::new();
        let mut anthropic = Headers::new();
        anthropic.add("anthropic-version", "2023-06-01").unwrap();
        for (target, headers, upstream, operation, sent) in [
            (
                "/v1/messages?beta=true",
                &none,
                "anthropic",
                Operation::Generate(Api::Anthropic),
                "/v1/messages?beta=true",
            ),
            (
                "/v1/messages/count_tokens",
                &none,
                "anthropic",
                Operation::About(Api::Anthropic),
                "/v1/messages/count_tokens",
            ),
            ("/v1/chat/completions", &none, "openai", Operation::Generate(Api::Chat), "/v1/chat/completions"),
            ("/v1/responses", &none, "openai", Operation::Generate(Api::Responses), "/v1/responses"),
            (
                "/v1beta/models/g:streamGenerateContent?alt=sse",
                &none,
                "gemini",
                Operation::Generate(Api::Gemini),
                "/v1beta/models/g:streamGenerateContent?alt=sse",
            ),
            (
                "/local/v1/chat/completions",
                &none,
                "local",
                Operation::Generate(Api::Chat),
                "/v1/chat/completions",
            ),
            ("/local", &none, "local", Operation::Other, "/"),
            ("/local?x", &none, "local", Operation::Other, "/?x"),
            ("/v1/models", &none, "openai", Operation::Other, "/v1/models"),
            ("/v1/models", &anthropic, "anthropic", Operation::Other, "/v1/models"),
        ] {
            let route = route(&upstreams, &Method::POST, target, headers).unwrap();
            assert_eq!(
                (route.upstream.name.as_str(), route.operation, route.target.as_str()),
                (upstream, operation, sent)
            );
        }
        assert!(route(&[local], &Method::POST, "/v1/messages", &none).is_none());
    }

    #[test]
    fn only_model_requests_are_taken_for_some() {
        let upstreams = usual();
        let of = |method: &Method, target: &str| {
            let route = route(&upstreams, method, target, &Headers::new()).unwrap();
            (route.upstream.name.to_string(), route.operation)
        };
        for target in ["/anthropic/v1/messages", "/api/v1/messages/", "/v1/messages?beta=true"] {
            let want = ("anthropic".to_owned(), Operation::Generate(Api::Anthropic));
            assert_eq!(of(&Method::POST, target), want, "{target}");
        }
        for target in ["/openai/deployments/d/chat/completions?api-version=1", "/v1/chat/completions/"] {
            let want = ("openai".to_owned(), Operation::Generate(Api::Chat));
            assert_eq!(of(&Method::POST, target), want, "{target}");
        }
        for (method, target) in [
            (Method::POST, "/v1/threads/thread_1/messages"),
            (Method::GET, "/v1/threads/thread_1/messages"),
            (Method::GET, "/v1/messages"),
            (Method::POST, "/v1/messages/batches"),
            (Method::GET, "/v1/chat/completions"),
            (Method::POST, "/v1/chat/completions/chatcmpl_1"),
            (Method::GET, "/v1/responses"),
            (Method::GET, "/v1/responses/resp_1"),
            (Method::POST, "/v1/responses/resp_1/cancel"),
            (Method::GET, "/v1/models?monkey=1"),
            (Method::GET, "/v1/models?x=key=1"),
        ] {
            assert_eq!(of(&method, target), ("openai".to_owned(), Operation::Other), "{method:?} {target}");
        }
        assert_eq!(of(&Method::GET, "/v1beta/models?x&key=1").0, "gemini");
    }

    #[test]
    fn steps_out_of_a_path_are_seen() {
        for target in ["/v1/../x", "/./x", "/v1/%2E%2e/x", "/v1/.%2e", "/v1/..?x"] {
            assert!(has_dot_segments(target), "{target}");
        }
        for target in ["/v1/x", "/v1/...", "/v1/a..b", "/v1/x?y=/../"] {
            assert!(!has_dot_segments(target), "{target}");
        }
    }

    #[test]
    fn an_upstream_is_an_origin() {
        for (name, origin) in [("a b", "http://h"), ("x", "h"), ("x", "http://h/v1"), ("x", "http://me@h")] {
            assert!(Upstream::new(name, origin).is_err(), "{name} {origin}");
        }
    }
}
