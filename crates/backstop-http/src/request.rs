//! What is sent: a method, an address, headers, a body, and how long it may take.

use crate::{Address, HeaderError, Headers, Limits, RequestBody};
use backstop_core::SafeText;

/// The method of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Method(pub(crate) hyper::Method);

/// A word that is no method that can be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no HTTP method that can be sent")]
pub struct MethodError {
    given: SafeText,
}

impl Method {
    /// Reads something.
    pub const GET: Self = Self(hyper::Method::GET);
    /// Reads the head of something.
    pub const HEAD: Self = Self(hyper::Method::HEAD);
    /// Sends something.
    pub const POST: Self = Self(hyper::Method::POST);
    /// Sets something.
    pub const PUT: Self = Self(hyper::Method::PUT);
    /// Changes something.
    pub const PATCH: Self = Self(hyper::Method::PATCH);
    /// Removes something.
    pub const DELETE: Self = Self(hyper::Method::DELETE);

    /// Reads a method, upper case as HTTP has it. `CONNECT` is refused: a client that opens tunnels
    /// is another one.
    pub fn parse(text: &str) -> Result<Self, MethodError> {
        let given = || MethodError { given: SafeText::new(text) };
        let method = hyper::Method::from_bytes(text.as_bytes()).map_err(|_| given())?;
        if method == hyper::Method::CONNECT { Err(given()) } else { Ok(Self(method)) }
    }

    /// The method as HTTP has it: `GET`.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) address: Address,
    pub(crate) headers: Headers,
    pub(crate) body: RequestBody,
    pub(crate) limits: Option<Limits>,
}

impl Request {
    /// A request with this method, without headers and body.
    pub fn new(method: Method, address: &Address) -> Self {
        Self {
            method,
            address: address.clone(),
            headers: Headers::new(),
            body: RequestBody::empty(),
            limits: None,
        }
    }

    /// A `GET`.
    pub fn get(address: &Address) -> Self {
        Self::new(Method::GET, address)
    }

    /// A `POST`.
    pub fn post(address: &Address) -> Self {
        Self::new(Method::POST, address)
    }

    /// With a header, beside others of the same name.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Self, HeaderError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// With a header whose value is a secret: `Debug` does not show it.
    pub fn secret_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Self, HeaderError> {
        self.headers.add_secret(name, value)?;
        Ok(self)
    }

    /// With these headers instead of its own.
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// With a body: bytes, or a stream from [`RequestBody::stream`].
    pub fn body(mut self, body: impl Into<RequestBody>) -> Self {
        self.body = body.into();
        self
    }

    /// With other time limits than the client's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_tokens() {
        assert_eq!(Method::parse("PROPFIND").unwrap().as_str(), "PROPFIND");
        assert_eq!(Method::parse("GET").unwrap(), Method::GET);
        for bad in ["", "GET /", "A\r\n", "CONNECT"] {
            assert!(Method::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let address = Address::parse("https://h/services/canary?key=canary").unwrap();
        let request = Request::post(&address)
            .secret_header("x-key", "canary")
            .and_then(|request| request.header("authorization", "Bearer canary"))
            .unwrap()
            .body(b"canary".to_vec());
        let shown = format!("{request:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}
