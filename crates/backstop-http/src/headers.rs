//! The headers of a request or a response.
//!
//! Values are bytes, as HTTP has them. A value that is a secret is never shown by `Debug`, and
//! HTTP/2 keeps it out of its compression tables.

use backstop_core::SafeText;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

/// How many headers a request may have.
const HEADERS_MAX: usize = 256;

/// Headers that the client writes itself: how a body is framed and a connection is used is not the
/// caller's to say.
pub(crate) const MANAGED: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// Headers whose values are secrets, whoever sets them.
const SECRET: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "x-amz-security-token",
];

/// Headers by name. Names are in lower case; a name can have several values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub(crate) HeaderMap);

/// A header that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name has a character that no header name has, or none at all.
    #[error("`{name}` is no header name")]
    Name {
        /// The name.
        name: SafeText,
    },
    /// The value has a line end or another control character. It may be a secret and is not shown.
    #[error("the value of the header `{name}` has a control character in it")]
    Value {
        /// The header.
        name: SafeText,
    },
    /// The client writes this header itself.
    #[error("the header `{name}` is written by the client")]
    Managed {
        /// The header.
        name: SafeText,
    },
    /// There are too many.
    #[error("a request cannot have more than {HEADERS_MAX} headers")]
    TooMany,
}

impl HeaderError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            HeaderError::Name { .. } => "header names are letters, digits and hyphens",
            HeaderError::Value { .. } => "look for a line end at the end of the value",
            HeaderError::Managed { .. } => "leave it out",
            HeaderError::TooMany => "leave some out",
        }
    }
}

/// Removes the headers that are about one connection: those of HTTP itself, and those that
/// `connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(hyper::header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect();
    for name in named.iter().map(String::as_str).chain(MANAGED.iter().copied()) {
        headers.remove(name);
    }
}

impl Headers {
    /// No headers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header, beside others of the same name.
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), HeaderError> {
        self.push(name, value.as_ref(), false)
    }

    /// Adds a header whose value is a secret.
    pub fn add_secret(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), HeaderError> {
        self.push(name, value.as_ref(), true)
    }

    fn push(&mut self, name: &str, value: &[u8], secret: bool) -> Result<(), HeaderError> {
        let shown = || SafeText::new(name);
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| HeaderError::Name { name: shown() })?;
        if MANAGED.contains(&parsed.as_str()) {
            return Err(HeaderError::Managed { name: shown() });
        }
        let mut value = HeaderValue::from_bytes(value).map_err(|_| HeaderError::Value { name: shown() })?;
        value.set_sensitive(secret || SECRET.contains(&parsed.as_str()));
        if self.0.len() >= HEADERS_MAX {
            return Err(HeaderError::TooMany);
        }
        self.0.append(parsed, value);
        Ok(())
    }

    /// These headers as they are passed on with another request: without those of one connection,
    /// and without `except` (names in lower case).
    pub fn passed_on(&self, except: &[&str]) -> Self {
        let mut passed = self.0.clone();
        remove_hop_by_hop(&mut passed);
        for name in except {
            passed.remove(*name);
        }
        for name in SECRET {
            if let hyper::header::Entry::Occupied(mut secret) = passed.entry(*name) {
                secret.iter_mut().for_each(|value| value.set_sensitive(true));
            }
        }
        Self(passed)
    }

    /// Replaces all values of a header by one that is a secret.
    pub fn set_secret(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), HeaderError> {
        self.0.remove(name);
        self.add_secret(name, value)
    }

    /// The first value of a header; the name in any case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(HeaderValue::as_bytes)
    }

    /// The first value of a header as text; none where it is not ASCII.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str().ok())
    }

    /// The length of the body that they announce, if they do.
    pub fn length(&self) -> Option<u64> {
        self.text("content-length")?.parse().ok()
    }

    /// Whether there is a header of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    /// Names and values as text, for a [`Signal`](backstop_core::Signal). What is not UTF-8 is
    /// replaced.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let pair = |(name, value): (&str, &[u8])| (name.to_owned(), String::from_utf8_lossy(value).into());
        self.iter().map(pair).collect()
    }
}

/// Secrets are not shown.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |(name, value): (&HeaderName, &HeaderValue)| {
            let secret = value.is_sensitive() || SECRET.contains(&name.as_str());
            let value = if secret { "…".into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.as_str().to_owned(), value.into_owned())
        };
        f.debug_map().entries(self.0.iter().map(shown)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_cannot_be_sent_are_refused() {
        let mut headers = Headers::new();
        let name = |name: &str| SafeText::new(name);
        for (key, value, error) in [
            ("", "x", HeaderError::Name { name: name("") }),
            ("a b", "x", HeaderError::Name { name: name("a b") }),
            ("a\r\nb", "x", HeaderError::Name { name: name("a\r\nb") }),
            ("x-a", "secret\r\nhost: evil", HeaderError::Value { name: name("x-a") }),
            ("x-a", "secret\n", HeaderError::Value { name: name("x-a") }),
            ("Host", "x", HeaderError::Managed { name: name("Host") }),
            ("transfer-encoding", "chunked", HeaderError::Managed { name: name("transfer-encoding") }),
        ] {
            assert_eq!(headers.add(key, value), Err(error.clone()), "{key}");
            assert!(!error.to_string().contains("secret") && !error.hint().is_empty());
        }
        assert!(headers.is_empty());
        for n in 0..HEADERS_MAX {
            headers.add(&format!("x-{n}"), "y").unwrap();
        }
        assert_eq!(headers.add("x", "y"), Err(HeaderError::TooMany));
    }

    #[test]
    fn names_are_found_in_any_case_and_values_are_bytes() {
        let mut headers = Headers::new();
        headers.add("Retry-After", "7").unwrap();
        headers.add("x-raw", [b'a', 0xff]).unwrap();
        headers.add("retry-after", "8").unwrap();
        assert_eq!(headers.text("RETRY-AFTER"), Some("7"));
        assert_eq!(headers.get("x-raw"), Some(&[b'a', 0xff][..]));
        assert_eq!(headers.text("x-raw"), None);
        assert_eq!(headers.len(), 3);
        assert_eq!(headers.to_pairs()[0], ("retry-after".to_owned(), "7".to_owned()));
    }

    #[test]
    fn what_is_about_one_connection_is_not_passed_on() {
        let pairs = [
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer canary"),
            ("x-plain", "2"),
            ("x-mine", "3"),
        ];
        let given = Headers(pairs.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect());
        let mut passed = given.passed_on(&["x-mine"]);
        let names: Vec<&str> = passed.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["authorization", "x-plain"]);
        assert!(passed.0["authorization"].is_sensitive());
        passed.set_secret("x-plain", "mine").unwrap();
        assert_eq!((passed.text("x-plain"), passed.len()), (Some("mine"), 2));
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut headers = Headers::new();
        headers.add("authorization", "Bearer canary").unwrap();
        headers.add_secret("x-team-key", "canary").unwrap();
        headers.add("x-plain", "seen").unwrap();
        let mut answered = HeaderMap::new();
        answered.append("set-cookie", HeaderValue::from_static("id=canary"));
        let shown = format!("{headers:?} {:?}", Headers(answered));
        assert!(!shown.contains("canary") && shown.contains("seen"), "{shown}");
    }
}
