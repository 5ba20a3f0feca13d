//! The address of a collector: plain HTTP, a host, a port, a path.
//!
//! It must not be looked up or connected to: that is for whoever sends.

/// The port of OTLP over HTTP.
const PORT: u16 = 4318;
/// The longest host.
const HOST_BYTES_MAX: usize = 253;

/// The address of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What is before `/v1/traces`: empty, or begins with a slash and does not end with one.
    pub path: String,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointError {
    /// It asks for encryption.
    Https,
    /// It has a user or a password.
    User,
    /// It is no address.
    Other,
}

impl EndpointError {
    /// What is wrong, after the address.
    pub fn what(self) -> &'static str {
        match self {
            EndpointError::Https => "is https, which Backstop does not speak",
            EndpointError::User => "has a user or a password in it",
            EndpointError::Other => "is no address of a collector",
        }
    }

    /// What to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            EndpointError::Https => {
                "run a collector on this machine that passes traces on, and name it: \"http://127.0.0.1:4318\""
            }
            EndpointError::User => "run a collector on this machine that has the credential",
            EndpointError::Other => "for example: \"http://127.0.0.1:4318\"",
        }
    }
}

impl Endpoint {
    /// Reads `http://host`, `http://host:port`, `http://[::1]:port/path`.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = text.split_once("://").ok_or(EndpointError::Other)?;
        if scheme.eq_ignore_ascii_case("https") {
            return Err(EndpointError::Https);
        }
        // What goes into a request must not be able to end a line of it.
        let plain = rest.bytes().all(|b| b.is_ascii_graphic() && !b"?#\\\"<>".contains(&b));
        if !scheme.eq_ignore_ascii_case("http") || !plain {
            return Err(EndpointError::Other);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(EndpointError::User);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner.split_once(']').ok_or(EndpointError::Other)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| EndpointError::Other)?;
                (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port).filter(|port| !port.is_empty())),
                None => (authority, Some("")),
            },
        };
        let port = match port.ok_or(EndpointError::Other)? {
            "" => PORT,
            port => port.parse().ok().filter(|port| *port > 0).ok_or(EndpointError::Other)?,
        };
        if host.is_empty() || host.len() > HOST_BYTES_MAX {
            return Err(EndpointError::Other);
        }
        Ok(Self { host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let is = |host: &str, port, path: &str| {
            Ok(Endpoint { host: host.to_owned(), port, path: path.to_owned() })
        };
        for (text, want) in [
            ("http://127.0.0.1:4318", is("127.0.0.1", 4318, "")),
            ("HTTP://collector/", is("collector", 4318, "")),
            ("http://[::1]:9/otlp/", is("::1", 9, "/otlp")),
            ("http://[::1]", is("::1", 4318, "")),
            ("https://x:4318", Err(EndpointError::Https)),
            ("http://me:pw@x", Err(EndpointError::User)),
        ] {
            assert_eq!(Endpoint::parse(text), want, "{text}");
        }
        for text in [
            "",
            "127.0.0.1:4318",
            "http://",
            "http://:4318",
            "http://x:0",
            "http://x:99999",
            "http://x:",
            "http://[::1",
            "http://[x]:1",
            "http://[::1]x",
            "ftp://x",
            "http://a b",
            "http://x/\r\nX: y",
            "http://x?y",
        ] {
            assert_eq!(Endpoint::parse(text), Err(EndpointError::Other), "{text}");
        }
    }
}
