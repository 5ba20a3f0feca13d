//! HTTP proxies between this machine and the server, as `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`
//! and `NO_PROXY` name them.
//!
//! `https` addresses are reached through a tunnel (`CONNECT`), so that the proxy sees the host and
//! nothing else; `http` addresses are sent to the proxy in full. This machine itself is never
//! reached through a proxy. A setting that cannot be used fails the request: nothing is sent
//! directly where somebody asked for a proxy.
//!
//! It must not read the environment: values are given by a function.

use crate::error::ProxyProblem;
use crate::{Address, AddressError, HttpErrorKind};
use backstop_core::SafeText;
use hyper::header::HeaderValue;
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How large the head of a proxy's answer may be.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// How many entries of `NO_PROXY` are read.
const EXCEPTIONS_MAX: usize = 1000;
/// The port of a proxy that names none.
const USUAL_PORT: u16 = 1080;

/// Which addresses are reached through which proxy.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    http: Option<Setting>,
    https: Option<Setting>,
    exceptions: Vec<Exception>,
}

/// A proxy that a variable names, or why it cannot be used.
type Setting = Result<Proxy, HttpErrorKind>;

/// A proxy, with the credential that it asks for.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) address: Address,
    /// The value of `proxy-authorization`.
    pub(crate) credential: Option<HeaderValue>,
}

/// A credential is not shown.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Proxy").field(&self.address.place()).finish()
    }
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    /// Every host.
    All,
    /// A host and everything below it, on one port or on all.
    Host(String, Option<u16>),
    /// A range of addresses: the address and how many of its bits count.
    Range(IpAddr, u8),
}

impl Proxies {
    /// No proxy for any address.
    pub fn none() -> Self {
        Self::default()
    }

    /// As the usual variables say, in lower or upper case, the lower case first. `variable` gives
    /// the value of one.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let given = |name: &str| variable(name).map(|value| value.trim().to_owned());
        let first = |names: &[&str]| {
            names.iter().find_map(|name| {
                let value = given(name).filter(|value| !value.is_empty())?;
                Some(Proxy::parse(&value).map_err(|why| unusable(name, why)))
            })
        };
        // A web server gives its CGI programs the client's header `Proxy` under this name.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let http: &[&str] =
            if is_cgi { &["http_proxy"] } else { &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] };
        let exceptions = given("no_proxy").or_else(|| given("NO_PROXY")).unwrap_or_default();
        Self {
            http: first(http),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: exceptions
                .split([',', ' '])
                .filter_map(Exception::parse)
                .take(EXCEPTIONS_MAX)
                .collect(),
        }
    }

    /// The proxy for an address, if it is reached through one.
    pub(crate) fn proxy_of(&self, address: &Address) -> Result<Option<&Proxy>, HttpErrorKind> {
        let setting = if address.is_https() { &self.https } else { &self.http };
        let Some(setting) = setting else { return Ok(None) };
        if is_this_machine(address.host())
            || self.exceptions.iter().any(|exception| exception.covers(address))
        {
            return Ok(None);
        }
        setting.as_ref().map(Some).map_err(Clone::clone)
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn unusable(variable: &str, why: AddressError) -> HttpErrorKind {
    HttpErrorKind::Proxy { proxy: SafeText::new(variable), problem: ProxyProblem::Setting(why) }
}

impl Proxy {
    /// Reads `http://user:password@host:port`, `host:port`, `host`.
    fn parse(text: &str) -> Result<Self, AddressError> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(AddressError::Scheme),
        };
        let rest = rest.split(['/', '?']).next().unwrap_or_default();
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let address = Address::parse(&format!("http://{host}"))?;
        let address = if address.has_port() { address } else { address.with_port(USUAL_PORT) };
        let credential = user.map(|user| {
            let encoded = base64(&percent_decoded(user));
            let mut value =
                HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|_| AddressError::Character)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self { address, credential: credential.transpose()? })
    }

    /// Something went wrong with this proxy.
    pub(crate) fn problem(&self, problem: ProxyProblem) -> HttpErrorKind {
        HttpErrorKind::Proxy { proxy: SafeText::new(self.address.place()), problem }
    }

    /// Asks the proxy on the other end of `stream` for a tunnel to the server of `address`.
    pub(crate) async fn tunnel<S>(&self, stream: &mut S, address: &Address) -> Result<(), HttpErrorKind>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = if address.host().contains(':') {
            format!("[{}]:{}", address.host(), address.port())
        } else {
            format!("{}:{}", address.host(), address.port())
        };
        let mut request = format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n").into_bytes();
        if let Some(credential) = &self.credential {
            request.extend_from_slice(b"proxy-authorization: ");
            request.extend_from_slice(credential.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let broken = |_| self.problem(ProxyProblem::HungUp);
        stream.write_all(&request).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let head = self.answer(stream).await?;
        match status(&head) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(self.problem(ProxyProblem::Credential)),
            Some(status) => Err(self.problem(ProxyProblem::Refused { status })),
            None => Err(self.problem(ProxyProblem::NotHttp)),
        }
    }

    /// The head of a proxy's answer. What a tunnel carries begins with our own words, so that
    /// nothing follows the head.
    async fn answer<S: AsyncRead + Unpin>(&self, stream: &mut S) -> Result<Vec<u8>, HttpErrorKind> {
        let mut head = Vec::new();
        let mut piece = [0; 1024];
        loop {
            let read = stream.read(&mut piece).await.map_err(|_| self.problem(ProxyProblem::HungUp))?;
            if read == 0 {
                return Err(self.problem(ProxyProblem::HungUp));
            }
            head.extend_from_slice(&piece[..read]);
            if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                let refused = status(&head).is_some_and(|status| !(200..300).contains(&status));
                // A refusal may have a body, which nobody reads.
                let whole = end + 4 == head.len() || refused;
                return if whole { Ok(head) } else { Err(self.problem(ProxyProblem::NotHttp)) };
            }
            if head.len() > ANSWER_BYTES_MAX || !b"HTTP/".starts_with(&head[..head.len().min(5)]) {
                return Err(self.problem(ProxyProblem::NotHttp));
            }
        }
    }
}

/// The status of `HTTP/1.1 200 Connection established`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let text = std::str::from_utf8(line).ok()?;
    let code = text.strip_prefix("HTTP/1.")?.get(2..5)?;
    code.parse().ok()
}

impl Exception {
    /// Reads `*`, `example.com`, `.example.com`, `*.example.com:8080`, `10.0.0.0/8`, `[::1]:80`.
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::All);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let (address, bits) = (address.parse::<IpAddr>().ok()?, bits.parse::<u8>().ok()?);
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most).then_some(Self::Range(address, bits));
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return Some(Self::Host(address.to_string(), None));
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry.as_str(), None),
        };
        let host = host.trim_start_matches("*.").trim_start_matches('.').trim_matches(['[', ']']);
        (!host.is_empty()).then(|| Self::Host(host.to_owned(), port))
    }

    fn covers(&self, address: &Address) -> bool {
        let host = address.host().trim_end_matches('.');
        match self {
            Self::All => true,
            Self::Host(name, port) => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|above| above.ends_with('.'));
                (host == name || below) && port.is_none_or(|port| port == address.port())
            }
            Self::Range(range, bits) => match (host.parse(), range) {
                (Ok(IpAddr::V4(host)), IpAddr::V4(range)) => {
                    same_bits(host.to_bits().into(), range.to_bits().into(), 32, *bits)
                }
                (Ok(IpAddr::V6(host)), IpAddr::V6(range)) => {
                    same_bits(host.to_bits(), range.to_bits(), 128, *bits)
                }
                _ => false,
            },
        }
    }
}

/// Whether the first `bits` of two addresses of `width` bits are the same.
fn same_bits(a: u128, b: u128, width: u8, bits: u8) -> bool {
    bits == 0 || (a ^ b) >> (width - bits) == 0
}

/// `%40` as `@`.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        decoded.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    decoded
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let group =
            three.iter().enumerate().fold(0, |sum, (n, byte)| sum | usize::from(*byte) << (16 - 8 * n));
        for digit in 0..4 {
            let shown = digit <= three.len();
            text.push(if shown { DIGITS[group >> (18 - 6 * digit) & 63].into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Proxies::from_variables(move |wanted| {
            variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
        })
    }

    fn proxy_of(proxies: &Proxies, address: &str) -> Option<String> {
        let address = Address::parse(address).unwrap();
        proxies.proxy_of(&address).unwrap().map(|proxy| proxy.address.place())
    }

    #[test]
    fn the_variables_of_other_programs_mean_the_same_here() {
        for (variables, address, proxy) in [
            (&[][..], "https://h/", None),
            (&[("HTTPS_PROXY", "http://p:3128")], "https://h/", Some("http://p:3128")),
            (&[("HTTPS_PROXY", "http://p:3128")], "http://h/", None),
            (&[("HTTPS_PROXY", "p:3128/")], "https://h/", Some("http://p:3128")),
            (&[("HTTPS_PROXY", "p")], "https://h/", Some("http://p:1080")),
            (&[("HTTPS_PROXY", "a:1"), ("https_proxy", "b:1")], "https://h/", Some("http://b:1")),
            (&[("HTTPS_PROXY", ""), ("ALL_PROXY", "b:1")], "https://h/", Some("http://b:1")),
            (&[("HTTP_PROXY", "a:1")], "http://h/", Some("http://a:1")),
            (&[("HTTP_PROXY", "a:1"), ("REQUEST_METHOD", "GET")], "http://h/", None),
            (&[("http_proxy", "a:1"), ("REQUEST_METHOD", "GET")], "http://h/", Some("http://a:1")),
            (&[("ALL_PROXY", "a:1")], "https://127.0.0.1:8080/", None),
            (&[("ALL_PROXY", "a:1")], "http://localhost/", None),
            (&[("ALL_PROXY", "a:1")], "http://[::1]/", None),
        ] {
            assert_eq!(proxy_of(&proxies(variables), address).as_deref(), proxy, "{variables:?} {address}");
        }
    }

    #[test]
    fn exceptions_are_hosts_ranges_and_everything() {
        for (exceptions, address, direct) in [
            ("*", "https://h/", true),
            ("example.com", "https://example.com/", true),
            ("example.com", "https://api.example.com/", true),
            (".example.com", "https://api.example.com/", true),
            ("*.example.com", "https://api.example.com/", true),
            ("example.com", "https://notexample.com/", false),
            ("example.com:8443", "https://example.com:8443/", true),
            ("example.com:8443", "https://example.com/", false),
            ("other, EXAMPLE.com", "https://example.com./", true),
            ("10.0.0.0/8", "https://10.200.1.1/", true),
            ("10.0.0.0/8", "https://11.0.0.1/", false),
            ("0.0.0.0/0", "https://11.0.0.1/", true),
            ("fd00::/8", "https://[fd12::1]/", true),
            ("10.1.2.3", "https://10.1.2.3/", true),
            ("10.0.0.0/99,,/,:", "https://10.1.2.3/", false),
        ] {
            let proxies = proxies(&[("HTTPS_PROXY", "p:1"), ("NO_PROXY", exceptions)]);
            assert_eq!(proxy_of(&proxies, address).is_none(), direct, "{exceptions} {address}");
        }
    }

    #[test]
    fn a_setting_that_cannot_be_used_fails_the_request() {
        let address = Address::parse("https://h/").unwrap();
        for value in ["socks5://p:1", "https://p:1", "http://", "p:0", "a b"] {
            let error = proxies(&[("HTTPS_PROXY", value)]).proxy_of(&address).unwrap_err();
            assert!(error.to_string().contains("HTTPS_PROXY"), "{error}");
        }
    }

    #[test]
    fn credentials_are_decoded_once_and_never_shown() {
        let proxy = Proxy::parse("http://me:p%40ss@proxy:8080").unwrap();
        assert_eq!(proxy.credential.as_ref().unwrap(), "Basic bWU6cEBzcw==");
        assert_eq!(proxy.address.place(), "http://proxy:8080");
        let shown = format!("{proxy:?} {:?}", proxies(&[("HTTPS_PROXY", "me:canary@proxy:1")]));
        assert!(!shown.contains("canary") && !shown.contains("bWU6"), "{shown}");
        for (bytes, text) in
            [(&b""[..], ""), (b"a", "YQ=="), (b"ab", "YWI="), (b"abc", "YWJj"), (b"%", "JQ==")]
        {
            assert_eq!(base64(bytes), text);
        }
        assert_eq!(percent_decoded("%zz%4"), b"%zz%4");
    }
}
