//! Who may call: this machine, no web page, and a token where one is asked for.

use super::Answer;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::net::IpAddr;

/// Who may call.
#[derive(Debug, Clone)]
pub struct Access {
    token: Option<String>,
    token_headers: &'static [&'static str],
}

impl Access {
    /// Everybody on this machine; elsewhere a token is needed, which is then looked for in
    /// `authorization`.
    pub fn local() -> Self {
        Self { token: None, token_headers: &["authorization"] }
    }

    /// Only whoever gives this token.
    pub fn with_token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// The token is in one of these headers, with or without `Bearer` before it.
    pub fn token_in(mut self, headers: &'static [&'static str]) -> Self {
        self.token_headers = headers;
        self
    }

    pub(super) fn at(self, address: IpAddr) -> AccessHere {
        AccessHere { access: self, loopback: address.is_loopback() }
    }
}

/// The same at one address.
pub(super) struct AccessHere {
    access: Access,
    /// Whether only this machine can connect.
    loopback: bool,
}

impl AccessHere {
    /// Refuses web pages and strangers. `absolute` is the host in the request line, which beats the
    /// header where there is one: such a request was meant for a proxy on its way to that host.
    pub(super) fn refusal(&self, absolute: Option<&str>, headers: &HeaderMap) -> Option<Answer> {
        let refused = |why: &str| Some(Answer::text(403, why));
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if self.loopback {
            let is_foreign = !is_local(text("host").unwrap_or_default())
                || headers.get_all("host").iter().count() > 1
                || absolute.is_some_and(|host| !is_local(host));
            if is_foreign {
                return refused("the host is not this machine: use localhost or 127.0.0.1 in the address");
            }
            if let Some(origin) = text("origin")
                && !origin.split_once("://").is_some_and(|(_, host)| is_local(host))
            {
                return refused(
                    "requests from web pages of other hosts are refused: ask from a program on this machine",
                );
            }
        } else if text("origin").is_some() {
            return refused("requests from web pages are refused");
        }
        let Some(token) = &self.access.token else { return None };
        let given = |name: &&str| {
            let value: Option<&HeaderValue> = headers.get(*name);
            let given = value.map(HeaderValue::as_bytes).unwrap_or_default();
            let given = given.strip_prefix(b"Bearer ").unwrap_or(given);
            is_same(given, token.as_bytes())
        };
        if self.access.token_headers.iter().any(given) {
            return None;
        }
        let headers = self.access.token_headers.join("` or `");
        Some(
            Answer::text(401, &format!("a token is needed, in the header `{headers}`"))
                .header("www-authenticate", "Bearer"),
        )
    }
}

/// Whether a host is this machine: `localhost`, `127.0.0.1:8080`, `[::1]`.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for host in
            ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:80", "127.9.9.9:1"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "10.0.0.1",
            "evil:localhost",
        ] {
            assert!(!is_local(host), "{host}");
        }
        assert!(is_same(b"abc", b"abc") && !is_same(b"abc", b"abd") && !is_same(b"", b"a"));
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn status(access: &AccessHere, pairs: &[(&'static str, &str)]) -> Option<u16> {
        access.refusal(None, &headers(pairs)).map(|answer| answer.status())
    }

    #[test]
    fn web_pages_and_strangers_are_refused() {
        let local = Access::local().at([127, 0, 0, 1].into());
        assert_eq!(status(&local, &[("host", "localhost:1")]), None);
        assert_eq!(status(&local, &[("host", "evil.test")]), Some(403));
        assert_eq!(status(&local, &[]), Some(403));
        assert_eq!(status(&local, &[("host", "localhost"), ("origin", "http://evil.test")]), Some(403));
        assert_eq!(status(&local, &[("host", "localhost"), ("origin", "null")]), Some(403));
        assert_eq!(status(&local, &[("host", "localhost"), ("origin", "http://127.0.0.1:9")]), None);
        let refused = |host| local.refusal(Some(host), &headers(&[("host", "localhost")])).is_some();
        assert!(refused("evil.test") && !refused("127.0.0.1:80"), "the host in the request line counts");
        let guarded =
            Access::local().with_token(Some("secret".to_owned())).token_in(&["x-token", "authorization"]);
        let far = guarded.at([10, 0, 0, 1].into());
        assert_eq!(status(&far, &[("host", "box"), ("authorization", "Bearer secret")]), None);
        assert_eq!(status(&far, &[("host", "box"), ("x-token", "secret")]), None);
        assert_eq!(status(&far, &[("host", "box"), ("x-token", "wrong!")]), Some(401));
        assert_eq!(
            status(&far, &[("host", "box"), ("x-token", "secret"), ("origin", "http://box")]),
            Some(403)
        );
    }
}
