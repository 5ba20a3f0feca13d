//! The environment variables by which clients of model APIs find the proxy.

use backstop_http::Address;
use std::net::SocketAddr;

/// A variable, the upstream whose clients read it, and the path that they expect in it.
const CLIENTS: [(&str, &str, &str); 4] = [
    ("ANTHROPIC_BASE_URL", "anthropic", ""),
    ("OPENAI_BASE_URL", "openai", "/v1"),
    ("OPENAI_API_BASE", "openai", "/v1"),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", ""),
];
/// The variables that send clients through another proxy,
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// and the ones that except this machine from that.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// What clients are told, and where their requests went before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientVariables {
    /// Variables for the environment of clients.
    pub set: Vec<(String, String)>,
    /// Upstreams by name and origin, where clients had other ones than the usual.
    pub upstreams: Vec<(String, String)>,
}

impl ClientVariables {
    /// For a proxy at this address. Where a variable is set already, its origin becomes the upstream,
    /// and its path stays.
    pub fn at(proxy: SocketAddr, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut this = Self::default();
        for (name, upstream, usual_path) in CLIENTS {
            let before = variable(name).and_then(|url| Address::parse(url.trim()).ok());
            // A proxy of ours, around this one: requests are not sent to ourselves.
            let before = before.filter(|address| address.authority() != proxy.to_string());
            let path = match &before {
                Some(address) => address.path().trim_end_matches('/').to_owned(),
                None => usual_path.to_owned(),
            };
            this.set.push((name.to_owned(), format!("http://{proxy}{path}")));
            if let Some(address) = before
                && !this.upstreams.iter().any(|(name, _)| name == upstream)
            {
                this.upstreams.push((upstream.to_owned(), address.place()));
            }
        }
        if PROXIES.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty())) {
            for name in EXCEPTIONS {
                let before = variable(name).filter(|value| !value.is_empty());
                let value = before.map_or_else(
                    || "127.0.0.1,localhost".to_owned(),
                    |all| format!("{all},127.0.0.1,localhost"),
                );
                this.set.push((name.to_owned(), value));
            }
        }
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_becomes_the_upstream() {
        let proxy: SocketAddr = "127.0.0.1:4141".parse().unwrap();
        let none = ClientVariables::at(proxy, &|_| None);
        let value = |all: &ClientVariables, name: &str| {
            all.set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone())
        };
        assert_eq!(value(&none, "ANTHROPIC_BASE_URL").as_deref(), Some("http://127.0.0.1:4141"));
        assert_eq!(value(&none, "OPENAI_BASE_URL").as_deref(), Some("http://127.0.0.1:4141/v1"));
        assert_eq!((none.upstreams.len(), value(&none, "NO_PROXY")), (0, None));
        let some = ClientVariables::at(proxy, &|name| match name {
            "OPENAI_BASE_URL" => Some("https://llm.example.com/openai/v1/".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("http://127.0.0.1:4141".to_owned()),
            "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some("corp".to_owned()),
            _ => None,
        });
        assert_eq!(value(&some, "OPENAI_BASE_URL").as_deref(), Some("http://127.0.0.1:4141/openai/v1"));
        assert_eq!(some.upstreams, [("openai".to_owned(), "https://llm.example.com".to_owned())]);
        assert_eq!(value(&some, "NO_PROXY").as_deref(), Some("corp,127.0.0.1,localhost"));
    }
}
