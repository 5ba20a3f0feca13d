//! A checked `http` or `https` address.
//!
//! Parsing is stricter than browsers are: ASCII only, no user or password, no fragment. It must not
//! look a name up or connect: that is the client's part.

use url::Url;

/// The longest address.
const ADDRESS_BYTES_MAX: usize = 2000;
/// The longest host name.
const HOST_BYTES_MAX: usize = 253;

/// An `http` or `https` address. Its path and query may be secrets (a webhook's often are), so
/// there is no `Display`: [`place`](Self::place) is for people, [`whole`](Self::whole) for sending.
#[derive(Clone)]
pub struct Address {
    url: Url,
    port_given: bool,
}

/// What is wrong with an address. The text continues a sentence that names the address: "`x` is no
/// http or https address".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It does not begin with `http://` or `https://`.
    #[error("is no http or https address")]
    Scheme,
    /// It has a user or a password.
    #[error("has a user or a password in it")]
    UserInfo,
    /// The host is missing or has a character that no host name has.
    #[error("has no valid host")]
    Host,
    /// The port is empty, zero or above 65535.
    #[error("has no valid port")]
    Port,
    /// It has a space, a control character, a non-ASCII character, or one of `# \ " < >`.
    #[error("has a character that is not allowed in an address")]
    Character,
    /// It is longer than 2000 bytes.
    #[error("is longer than {ADDRESS_BYTES_MAX} bytes")]
    TooLong,
    /// A path that was to be below another one leads out of it.
    #[error("has a path that leads out of the address it is below")]
    Outside,
}

impl AddressError {
    /// What to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            AddressError::UserInfo => {
                "leave the credential out of the address: put it into an environment variable, and name \
                 that variable"
            }
            AddressError::Character => "write other characters percent-encoded, a space as %20",
            AddressError::Outside => "leave `..` out of the path",
            _ => "for example: \"https://hooks.example.com/alerts\" or \"http://127.0.0.1:4318\"",
        }
    }
}

impl Address {
    /// Reads `https://host/path`, `http://[::1]:8080/path?query`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(AddressError::Scheme);
        }
        // The parser below would repair or drop these; nothing that was typed may change its
        // meaning, and nothing may end a line of a request.
        if !rest.bytes().all(|b| b.is_ascii_graphic() && !b"#\\\"<>".contains(&b)) {
            return Err(AddressError::Character);
        }
        let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        let port_given = check_authority(authority)?;
        let url = Url::parse(text).map_err(|_| AddressError::Host)?;
        Ok(Self { url, port_given })
    }

    /// Whether it asks for TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host: a name in lower case, an IPv4 address, or an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// The port, the scheme's usual one where none was written.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Whether a port was written. Protocols with a usual port of their own ask for this, and set
    /// it with [`with_port`](Self::with_port).
    pub fn has_port(&self) -> bool {
        self.port_given
    }

    /// The host as a `Host` header has it: an IPv6 address in brackets, the port where it is not
    /// the scheme's usual one.
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The path, e.g. `/v1/items`. It may be a secret.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// The query without its question mark. It may be a secret.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// Path and query as a request line has them, e.g. `/v1/items?page=2`. They may be secrets.
    pub fn path_and_query(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// All of it, for sending, storing and comparing. It may hold a secret.
    pub fn whole(&self) -> &str {
        self.url.as_str()
    }

    /// Scheme, host and port, for people: `https://hooks.slack.com`. No path, which may be a
    /// secret.
    pub fn place(&self) -> String {
        format!("{}://{}", self.url.scheme(), self.authority())
    }

    /// The same address with another port.
    pub fn with_port(&self, port: u16) -> Self {
        let mut url = self.url.clone();
        // Fails only for addresses without a host, and those are not parsed.
        let _ = url.set_port(Some(port));
        Self { url, port_given: true }
    }

    /// The address of `path_and_query` below this one: `http://host/base` and `/v1/traces` give
    /// `http://host/base/v1/traces`. The query of this address is left out.
    pub fn below(&self, path_and_query: &str) -> Result<Self, AddressError> {
        let base = self.url.path().trim_end_matches('/');
        let below = path_and_query.trim_start_matches('/');
        let separator = if below.is_empty() || below.starts_with('?') { "" } else { "/" };
        let joined = Self::parse(&format!("{}{base}{separator}{below}", self.place()))?;
        let inside = joined.url.path().strip_prefix(base);
        if !inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(AddressError::Outside);
        }
        Ok(Self { port_given: self.port_given, ..joined })
    }
}

/// Checks `host`, `host:port`, `[::1]:port`. Gives whether there is a port.
fn check_authority(authority: &str) -> Result<bool, AddressError> {
    if authority.contains('@') {
        return Err(AddressError::UserInfo);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']').ok_or(AddressError::Host)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::Host)?;
            match after.strip_prefix(':') {
                None if !after.is_empty() => return Err(AddressError::Port),
                port => (host, port),
            }
        }
        None => {
            let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
            if !host.bytes().all(allowed) {
                return Err(AddressError::Host);
            }
            (host, port)
        }
    };
    if host.is_empty() || host.len() > HOST_BYTES_MAX {
        return Err(AddressError::Host);
    }
    let valid = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0) && !port.starts_with('+');
    if port.is_some_and(|port| !valid(port)) {
        return Err(AddressError::Port);
    }
    Ok(port.is_some())
}

/// Whether the port was written or implied makes no difference.
impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Address {}

impl std::hash::Hash for Address {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.url.hash(state);
    }
}

/// Path and query may be secrets and are not shown.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Address").field(&self.place()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_address() {
        for (text, place, path, has_port) in [
            ("https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com", "/services/T/B/x", false),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "/", true),
            ("HTTP://[::1]:9/a?b=c", "http://[::1]:9", "/a?b=c", true),
            ("https://h?key=1", "https://h", "/?key=1", false),
            ("http://Collector/", "http://collector", "/", false),
            ("http://collector:80/", "http://collector", "/", true),
            ("https://my_host.local.:8443/", "https://my_host.local.:8443", "/", true),
            ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example", "/", false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(
                (address.place().as_str(), address.path_and_query(), address.has_port()),
                (place, path, has_port),
                "{text}"
            );
            assert_eq!(address.whole(), format!("{place}{path}"));
            assert!(!format!("{address:?}").contains("services"), "{address:?}");
        }
        let v6 = Address::parse("http://[::1]/x?y").unwrap();
        assert_eq!((v6.host(), v6.port(), v6.path(), v6.query()), ("::1", 80, "/x", Some("y")));
        assert_eq!(v6.authority(), "[::1]");
        assert_eq!(Address::parse("https://h").unwrap(), Address::parse("https://h:443/").unwrap());
    }

    #[test]
    fn what_is_wrong_is_named() {
        use AddressError::{Character, Host, Port, Scheme, UserInfo};
        for (text, error) in [
            ("", Scheme),
            ("x", Scheme),
            ("127.0.0.1:4318", Scheme),
            ("ftp://x", Scheme),
            ("http:/x", Scheme),
            ("http://", Host),
            ("http://:1", Host),
            ("http:///x", Host),
            ("http://x;y/", Host),
            ("http://[::1", Host),
            ("http://[x]:1", Host),
            ("http://[fe80::1%25eth0]/", Host),
            ("http://a..b:1:2/", Port),
            ("http://1.2.3.999/", Host),
            ("http://x:0", Port),
            ("http://x:99999", Port),
            ("http://x:+80", Port),
            ("http://x:", Port),
            ("http://[::1]x", Port),
            ("http://a b", Character),
            ("http://x/\r\nX: y", Character),
            ("http://x/#y", Character),
            ("http://x\"y", Character),
            ("http://ü/", Character),
            ("http://a\\b/", Character),
            ("https://me:pw@x/", UserInfo),
            ("https://me@x/", UserInfo),
        ] {
            assert_eq!(Address::parse(text), Err(error), "{text}");
            assert!(!error.hint().is_empty());
        }
        let long = format!("http://h/{}", "x".repeat(ADDRESS_BYTES_MAX));
        assert_eq!(Address::parse(&long), Err(AddressError::TooLong));
        // An at sign in a path is no user.
        assert!(Address::parse("https://h/@me/x").is_ok());
    }

    #[test]
    fn a_path_below_an_address_stays_below_it() {
        let below = |base: &str, path: &str| {
            Address::parse(base).unwrap().below(path).map(|address| address.whole().to_owned())
        };
        assert_eq!(below("http://h:4318", "/v1/traces").unwrap(), "http://h:4318/v1/traces");
        assert_eq!(below("http://h/otlp/", "v1/traces").unwrap(), "http://h/otlp/v1/traces");
        assert_eq!(below("https://h/api?k=v", "/m?x=y").unwrap(), "https://h/api/m?x=y");
        assert_eq!(below("https://h/api", "?x").unwrap(), "https://h/api?x");
        for out in ["/../x", "/a/../../x", "/%2e%2e/x", "/..", "//../../x"] {
            assert_eq!(below("http://h/api", out), Err(AddressError::Outside), "{out}");
        }
        assert_eq!(below("http://h/api", "/a b"), Err(AddressError::Character));
        let base = Address::parse("http://h").unwrap();
        assert!(!base.below("/x").unwrap().has_port());
        let otlp = base.with_port(4318);
        assert_eq!((otlp.whole(), otlp.has_port()), ("http://h:4318/", true));
    }
}
