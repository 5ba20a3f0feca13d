//! The address of a sink: http or https, a host, a port, a path.
//!
//! It must not be looked up or connected to: that is for whoever sends.

/// The longest host.
const HOST_BYTES_MAX: usize = 253;
/// The longest address.
const ADDRESS_BYTES_MAX: usize = 2000;

/// The address of a sink. What is in it may be a secret: it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Whether it asks for encryption.
    pub https: bool,
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What is asked for there; begins with a slash.
    pub path: String,
}

/// The path of a webhook is its secret, so that it is not shown.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has a user or a password.
    #[error("has a user or a password in it")]
    User,
    /// It is no address.
    #[error("is no http or https address")]
    Other,
}

impl AddressError {
    /// What to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            AddressError::User => "put the credential into a variable, and name it with `token_env`",
            AddressError::Other => "for example: \"https://hooks.example.com/alerts\"",
        }
    }
}

impl Address {
    /// Reads `https://host/path`, `http://[::1]:8080/path?query`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Other)?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(AddressError::Other),
        };
        // What goes into a request must not be able to end a line of it.
        let plain = rest.bytes().all(|b| b.is_ascii_graphic() && !b"#\\\"<>".contains(&b));
        if !plain || text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::Other);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(AddressError::User);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner.split_once(']').ok_or(AddressError::Other)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::Other)?;
                (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port).filter(|port| !port.is_empty())),
                None => (authority, Some("")),
            },
        };
        let port = match port.ok_or(AddressError::Other)? {
            "" if https => 443,
            "" => 80,
            port => port.parse().ok().filter(|port| *port > 0).ok_or(AddressError::Other)?,
        };
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
        if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.bytes().all(allowed) {
            return Err(AddressError::Other);
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { https, host: host.to_owned(), port, path })
    }

    /// The host as a request names it: with its port where that is not the usual one.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// All of it. What is in it may be a secret.
    pub fn whole(&self) -> String {
        format!("{}{}", self.place(), self.path)
    }

    /// Without its path, which may be a secret: `https://hooks.slack.com`.
    pub fn place(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.authority())
    }

    /// The comments of a GitHub issue or pull request, where this is the page of one; itself otherwise.
    pub fn github_comments(self) -> Self {
        let parts: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            [owner, repo, "issues" | "pull", number]
                if self.host.eq_ignore_ascii_case("github.com")
                    && number.bytes().all(|b| b.is_ascii_digit()) =>
            {
                let path = format!("/repos/{owner}/{repo}/issues/{number}/comments");
                Self { host: "api.github.com".to_owned(), path, ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, place, path) in [
            ("https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com", "/services/T/B/x"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "/"),
            ("HTTP://[::1]:9/a?b=c", "http://[::1]:9", "/a?b=c"),
            ("https://h?key=1", "https://h", "/?key=1"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.place().as_str(), address.path.as_str()), (place, path), "{text}");
            assert!(!format!("{address:?}").contains("services"), "{address:?}");
        }
        for text in [
            "",
            "x",
            "ftp://x",
            "http://",
            "http://:1",
            "http://x:0",
            "http://x:99999",
            "http://x:",
            "http://[::1",
            "http://a b",
            "http://x/\r\nX: y",
            "http://x/#y",
            "http://x\"y",
            "http://ü/",
            "http://a\\b/",
            "http://x;y/",
        ] {
            assert_eq!(Address::parse(text), Err(AddressError::Other), "{text}");
        }
        assert_eq!(Address::parse("https://me:pw@x/"), Err(AddressError::User));
    }

    #[test]
    fn the_page_of_an_issue_is_where_its_comments_are() {
        let api = |text: &str| Address::parse(text).unwrap().github_comments().whole();
        for page in ["https://github.com/acme/shop/issues/12", "https://github.com/acme/shop/pull/12/"] {
            assert_eq!(api(page), "https://api.github.com/repos/acme/shop/issues/12/comments");
        }
        for other in ["https://ghe.acme.dev/api/v3/repos/a/b/issues/1/comments", "https://github.com/a/b"] {
            assert_eq!(api(other), other);
        }
    }
}
