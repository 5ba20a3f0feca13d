//! The environment variables by which clients of model APIs find the proxy.

use super::Upstream;
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
    /// Variables that stay as they are: through the proxy, a credential would reach another host.
    pub left_alone: Vec<LeftAlone>,
}

/// A variable that is not pointed to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// The variable.
    pub name: String,
    /// The upstream whose clients read it.
    pub upstream: String,
    /// The origin in it; none where it is no address that a proxy can use.
    pub origin: Option<String>,
}

impl LeftAlone {
    /// What to say about it, and what to do. `is_running` where the proxy is one that a person
    /// starts.
    pub fn warning(&self, is_running: bool) -> (String, String) {
        let why = match &self.origin {
            Some(origin) => format!("the proxy has no upstream at {origin}"),
            None => "its value is no address that the proxy can use".to_owned(),
        };
        let hint = match &self.origin {
            _ if !is_running => {
                "its clients go there without the proxy; unset the variable, or set it to one origin"
                    .to_owned()
            }
            Some(origin) => {
                format!(
                    "start the proxy with `--upstream {}={origin}`, and give it to --env too",
                    self.upstream
                )
            }
            None => "write an http or https address without a user or a password".to_owned(),
        };
        (format!("{} is left alone: {why}", self.name), hint)
    }
}

impl ClientVariables {
    /// For a proxy that is started at this address for these clients. Where a variable is set
    /// already, its origin becomes the upstream, and its path stays.
    pub fn at(proxy: SocketAddr, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut upstreams: Vec<(String, String)> = Vec::new();
        let mut this = Self::by(proxy, variable, |upstream, origin| {
            match upstreams.iter().find(|(name, _)| name == upstream) {
                Some((_, other)) if other != origin => return None,
                Some(_) => {}
                None => upstreams.push((upstream.to_owned(), origin.to_owned())),
            }
            Some(upstream.to_owned())
        });
        this.upstreams = upstreams;
        this
    }

    /// For a proxy that runs at this address with these upstreams. A variable that is set to
    /// another origin than theirs stays as it is.
    pub fn of_running(
        proxy: SocketAddr,
        upstreams: &[Upstream],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self::by(proxy, variable, |client, origin| {
            let mut there = upstreams.iter().filter(|upstream| upstream.origin.place() == origin);
            let same_name = there.clone().find(|upstream| upstream.name.as_str() == client);
            same_name.or_else(|| there.next()).map(|upstream| upstream.name.to_string())
        })
    }

    /// `upstream_at` gives the name of the upstream for a client's usual one and its origin.
    fn by(
        proxy: SocketAddr,
        variable: &dyn Fn(&str) -> Option<String>,
        mut upstream_at: impl FnMut(&str, &str) -> Option<String>,
    ) -> Self {
        let mut this = Self::default();
        for (name, upstream, usual_path) in CLIENTS {
            let before = variable(name).filter(|value| !value.trim().is_empty());
            let Some(before) = before else {
                this.set.push((name.to_owned(), format!("http://{proxy}{usual_path}")));
                continue;
            };
            let address = Address::parse(before.trim()).ok();
            if address.as_ref().is_some_and(|address| is_at(address, proxy)) {
                // It leads to this proxy already: requests are not sent to ourselves.
                this.set.push((name.to_owned(), before));
                continue;
            }
            let origin = address.as_ref().map(Address::place);
            let forced = origin.as_deref().and_then(|origin| upstream_at(upstream, origin));
            if let (Some(address), Some(forced)) = (address, forced) {
                // The upstream is named, so that nothing in the path that was there can name
                // another.
                let path = address.path().trim_end_matches('/');
                this.set.push((name.to_owned(), format!("http://{proxy}/{forced}{path}")));
            } else {
                let (name, upstream) = (name.to_owned(), upstream.to_owned());
                this.left_alone.push(LeftAlone { name, upstream, origin });
            }
        }
        this.except_from_proxies(variable);
        this
    }

    /// Keeps clients from asking another proxy for this one.
    fn except_from_proxies(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        if !PROXIES.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty())) {
            return;
        }
        for name in EXCEPTIONS {
            let before = variable(name).filter(|value| !value.is_empty());
            let value = before
                .map_or_else(|| "127.0.0.1,localhost".to_owned(), |all| format!("{all},127.0.0.1,localhost"));
            self.set.push((name.to_owned(), value));
        }
    }
}

/// Whether an address is that of the proxy.
fn is_at(address: &Address, proxy: SocketAddr) -> bool {
    let by_name = proxy.ip().is_loopback() && address.host() == "localhost" && address.port() == proxy.port();
    by_name || address.authority() == proxy.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> SocketAddr {
        "127.0.0.1:4141".parse().unwrap()
    }

    fn value(all: &ClientVariables, name: &str) -> Option<String> {
        all.set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn what_was_set_becomes_the_upstream() {
        let none = ClientVariables::at(proxy(), &|_| None);
        assert_eq!(value(&none, "ANTHROPIC_BASE_URL").as_deref(), Some("http://127.0.0.1:4141"));
        assert_eq!(value(&none, "OPENAI_BASE_URL").as_deref(), Some("http://127.0.0.1:4141/v1"));
        assert_eq!((none.upstreams.len(), value(&none, "NO_PROXY")), (0, None));
        let some = ClientVariables::at(proxy(), &|name| match name {
            "OPENAI_BASE_URL" => Some("https://llm.example.com/openai/v1/".to_owned()),
            "OPENAI_API_BASE" => Some("https://other.example.com/v1".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("http://127.0.0.1:4141".to_owned()),
            "GOOGLE_GEMINI_BASE_URL" => Some("https://me:secret@gemini.example.com".to_owned()),
            "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some("corp".to_owned()),
            _ => None,
        });
        assert_eq!(
            value(&some, "OPENAI_BASE_URL").as_deref(),
            Some("http://127.0.0.1:4141/openai/openai/v1"),
            "the upstream is named, and the path is whole"
        );
        assert_eq!(value(&some, "ANTHROPIC_BASE_URL").as_deref(), Some("http://127.0.0.1:4141"));
        assert_eq!(some.upstreams, [("openai".to_owned(), "https://llm.example.com".to_owned())]);
        assert_eq!(value(&some, "NO_PROXY").as_deref(), Some("corp,127.0.0.1,localhost"));
        // One upstream has one origin, and a password in an address cannot be passed on.
        let left: Vec<(&str, Option<&str>)> =
            some.left_alone.iter().map(|left| (left.name.as_str(), left.origin.as_deref())).collect();
        assert_eq!(
            left,
            [("OPENAI_API_BASE", Some("https://other.example.com")), ("GOOGLE_GEMINI_BASE_URL", None)]
        );
    }

    #[test]
    fn a_proxy_that_runs_gets_only_what_it_sends_to_the_same_host() {
        let mut upstreams = Upstream::usual();
        upstreams.push(Upstream::new("router", "https://router.example.com").unwrap());
        let all = ClientVariables::of_running(proxy(), &upstreams, &|name| match name {
            "OPENAI_BASE_URL" => Some("https://api.openai.com/v1".to_owned()),
            "OPENAI_API_BASE" => Some("https://router.example.com/api/v1".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("https://elsewhere.example.com/anthropic".to_owned()),
            "GOOGLE_GEMINI_BASE_URL" => Some("http://localhost:4141".to_owned()),
            _ => None,
        });
        assert_eq!(value(&all, "OPENAI_BASE_URL").as_deref(), Some("http://127.0.0.1:4141/openai/v1"));
        assert_eq!(value(&all, "OPENAI_API_BASE").as_deref(), Some("http://127.0.0.1:4141/router/api/v1"));
        assert_eq!(value(&all, "GOOGLE_GEMINI_BASE_URL").as_deref(), Some("http://localhost:4141"));
        assert_eq!(value(&all, "ANTHROPIC_BASE_URL"), None);
        let left = LeftAlone {
            name: "ANTHROPIC_BASE_URL".to_owned(),
            upstream: "anthropic".to_owned(),
            origin: Some("https://elsewhere.example.com".to_owned()),
        };
        assert_eq!((all.left_alone, all.upstreams.len()), (vec![left], 0));
    }
}
