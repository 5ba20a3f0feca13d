//! What went wrong with a request, typed to the leaf.
//!
//! Every error says how far the request got ([`HttpError::dispatch`]), names the server without the
//! secret path, has a hint for people and turns into a [`Signal`] for the classifier.

use crate::AddressError;
use crate::headers::HeaderError;
use crate::limits::{Expired, Limit};
use backstop_core::{Dispatch, SafeText, Signal, Surface};
use std::time::Duration;

/// A request that failed: what happened, where, and whether the request can have reached the
/// server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct HttpError {
    place: String,
    kind: HttpErrorKind,
    dispatch: Dispatch,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpErrorKind {
    /// The host name has no address.
    #[error("the host name was not found ({detail})")]
    NameNotFound {
        /// The system's message.
        detail: SafeText,
    },
    /// The host name could not be looked up now: the name server did not answer.
    #[error("the host name could not be looked up ({detail})")]
    NameServer {
        /// The system's message.
        detail: SafeText,
    },
    /// Nothing listens on that port.
    #[error("connection refused")]
    Refused,
    /// There is no way to the host.
    #[error("the host cannot be reached ({detail})")]
    Unreachable {
        /// The system's message.
        detail: SafeText,
    },
    /// This machine could not open a connection: no file descriptors or memory left, not permitted.
    #[error("cannot open a connection ({detail})")]
    Local {
        /// The system's message.
        detail: SafeText,
        /// The errno, e.g. `EMFILE`.
        errno: Option<&'static str>,
    },
    /// The server's certificate was rejected.
    #[error("the certificate was rejected: {0}")]
    Certificate(CertificateProblem),
    /// There are no root certificates to check a certificate against.
    #[error("no root certificates were found on this machine ({detail})")]
    NoRoots {
        /// What was tried, where that is known.
        detail: SafeText,
    },
    /// The server does not answer with TLS.
    #[error("the server does not speak TLS on this port")]
    NotTls,
    /// The TLS handshake failed for another reason than the certificate.
    #[error("the TLS handshake failed ({detail})")]
    Tls {
        /// What TLS says.
        detail: SafeText,
    },
    /// The connection was reset.
    #[error("the connection was reset")]
    Reset,
    /// The server closed the connection before its response began or its head was complete.
    #[error("the server closed the connection without a response")]
    Closed,
    /// The connection ended in the middle of the response's body.
    #[error("the response broke off after {received} bytes of its body")]
    BodyCut {
        /// How many bytes of the body had arrived.
        received: u64,
    },
    /// A time limit of ours ended it.
    #[error("{}", timeout_text(*limit, *after))]
    Timeout {
        /// Which limit.
        limit: Limit,
        /// How long it is.
        after: Duration,
    },
    /// The response's head has too many bytes or too many headers.
    #[error("the head of the response is larger than {} KiB or {headers_max} headers", bytes_max >> 10)]
    HeadTooLarge {
        /// How many bytes it may have.
        bytes_max: usize,
        /// How many headers it may have.
        headers_max: usize,
    },
    /// The response's body is longer than the reader allows.
    #[error("the body of the response is larger than {bytes_max} bytes")]
    BodyTooLarge {
        /// How many bytes it may have.
        bytes_max: usize,
    },
    /// What came back is not HTTP.
    #[error("the response is not valid HTTP ({detail})")]
    NotHttp {
        /// What is wrong with it.
        detail: SafeText,
    },
    /// The server refused the request before it looked at it (HTTP/2 `REFUSED_STREAM`).
    #[error("the server refused the request unread")]
    StreamRefused,
    /// The server ended the request or the whole HTTP/2 connection.
    #[error("the server ended the HTTP/2 stream ({detail})")]
    StreamEnded {
        /// The reason as HTTP/2 names it.
        detail: SafeText,
    },
    /// The sender of the request's body gave up, or sent another length than it had announced.
    #[error("the request's body was not sent to its end")]
    RequestBody,
    /// A header of the request cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The proxy on the way to the server cannot be used.
    #[error("the proxy {proxy} {problem}")]
    Proxy {
        /// The proxy's host and port, or the variable that names it.
        proxy: SafeText,
        /// What is wrong with it.
        problem: ProxyProblem,
    },
}

/// Why a proxy cannot be used. The text continues a sentence that names the proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyProblem {
    /// The variable has a value that names no proxy.
    #[error("{0}")]
    Setting(AddressError),
    /// There is no connection to it.
    #[error("cannot be connected to: {0}")]
    Connect(Box<HttpErrorKind>),
    /// It asks for a user and a password, or for others.
    #[error("asks for a user and a password (status 407)")]
    Credential,
    /// It does not connect to the server.
    #[error("refused to connect to the server (status {status})")]
    Refused {
        /// The status of its answer.
        status: u16,
    },
    /// It closed the connection instead of an answer.
    #[error("closed the connection")]
    HungUp,
    /// Its answer is not HTTP.
    #[error("does not answer as an HTTP proxy does")]
    NotHttp,
}

/// Why a server's certificate was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateProblem {
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its time has not begun.
    #[error("it is not valid yet")]
    NotYetValid,
    /// It was not issued by anybody that is trusted here.
    #[error("its issuer is not trusted")]
    UnknownIssuer,
    /// It is for another host.
    #[error("it is for another host")]
    WrongName,
    /// Its issuer has not signed it.
    #[error("its issuer has not signed it")]
    BadSignature,
    /// It was revoked.
    #[error("it was revoked")]
    Revoked,
    /// It is wrong in another way.
    #[error("{0}")]
    Other(SafeText),
}

fn timeout_text(limit: Limit, after: Duration) -> String {
    let after = backstop_core::duration::shown(after);
    match limit {
        Limit::Connect => format!("no connection within {after}"),
        Limit::Idle => format!("the server did nothing for {after}"),
        Limit::Total => format!("no complete response within {after}"),
    }
}

impl HttpError {
    pub(crate) fn new(place: String, kind: HttpErrorKind, dispatch: Dispatch) -> Self {
        Self { place, kind, dispatch }
    }

    /// What happened.
    pub fn kind(&self) -> &HttpErrorKind {
        &self.kind
    }

    /// Scheme, host and port of the server. No path, which may be a secret.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// How far the request got. `NotDispatched` is certain: no byte of the request can have been
    /// read by the server, or the server has said that it did not look at it. `Answered`: a
    /// response began, and was refused here. `Lost`: anything else; nobody knows what the server
    /// did.
    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    /// Whether a time limit of ours ended it, and which.
    pub fn timeout(&self) -> Option<Limit> {
        match &self.kind {
            HttpErrorKind::Timeout { limit, .. } => Some(*limit),
            _ => None,
        }
    }

    /// What to do about it, with the command to type where there is one.
    pub fn hint(&self) -> String {
        let place = &self.place;
        match &self.kind {
            HttpErrorKind::NameNotFound { .. } => "check the spelling of the host".to_owned(),
            HttpErrorKind::NameServer { .. } | HttpErrorKind::Unreachable { .. } => {
                "check the network connection of this machine".to_owned()
            }
            HttpErrorKind::Refused => format!("check the port, and that the server runs: `curl -v {place}`"),
            HttpErrorKind::Local { .. } => "check `ulimit -n` and the firewall of this machine".to_owned(),
            HttpErrorKind::Certificate(CertificateProblem::UnknownIssuer) => {
                "if the issuer is yours, add its root certificate to this machine's, or name the file in \
                 SSL_CERT_FILE"
                    .to_owned()
            }
            HttpErrorKind::Certificate(CertificateProblem::NotYetValid) => {
                "check the clock of this machine: `date`".to_owned()
            }
            HttpErrorKind::Certificate(_) => {
                format!("check the address, and look at the certificate: `curl -v {place}`")
            }
            HttpErrorKind::NoRoots { .. } => {
                "install the package `ca-certificates`, or name a file of roots in SSL_CERT_FILE".to_owned()
            }
            HttpErrorKind::NotTls => {
                "if the server speaks plain http, write http:// in the address".to_owned()
            }
            HttpErrorKind::Timeout { limit: Limit::Connect, .. } => {
                format!("check host, port and firewall: `curl -v {place}`")
            }
            HttpErrorKind::NotHttp { .. } => {
                format!("check the port, and whether the address is https: `curl -v {place}`")
            }
            HttpErrorKind::Header(error) => error.hint().to_owned(),
            HttpErrorKind::HeadTooLarge { .. } | HttpErrorKind::BodyTooLarge { .. } => {
                format!("check that the address is the one that is meant: `curl -v {place}`")
            }
            HttpErrorKind::RequestBody => "send the request again, with its whole body".to_owned(),
            HttpErrorKind::Proxy { proxy, problem } => match problem {
                ProxyProblem::Setting(_) => {
                    format!("write {proxy}=http://HOST:PORT; proxies are spoken to by http alone")
                }
                ProxyProblem::Credential => {
                    "write user and password into the variable: http://USER:PASSWORD@HOST:PORT".to_owned()
                }
                _ => format!(
                    "check HTTPS_PROXY and HTTP_PROXY; hosts in NO_PROXY are reached without one: `curl -v {place}`"
                ),
            },
            _ => "look at the server's log".to_owned(),
        }
    }

    /// The status with which a proxy on the way refused the request.
    fn proxy_status(&self) -> Option<u16> {
        match &self.kind {
            HttpErrorKind::Proxy { problem: ProxyProblem::Refused { status }, .. } => Some(*status),
            HttpErrorKind::Proxy { problem: ProxyProblem::Credential, .. } => Some(407),
            _ => None,
        }
    }

    /// Whether the answer's body is larger than what is read.
    pub fn is_body_too_large(&self) -> bool {
        matches!(self.kind, HttpErrorKind::BodyTooLarge { .. })
    }

    /// The errno, or what clients call it, as the classifier knows it.
    pub fn errno(&self) -> Option<&'static str> {
        self.kind.errno()
    }
}

impl HttpErrorKind {
    fn errno(&self) -> Option<&'static str> {
        Some(match self {
            HttpErrorKind::NameNotFound { .. } => "ENOTFOUND",
            HttpErrorKind::NameServer { .. } => "EAI_AGAIN",
            HttpErrorKind::Refused => "ECONNREFUSED",
            HttpErrorKind::Unreachable { .. } => "EHOSTUNREACH",
            HttpErrorKind::Local { errno, .. } => return *errno,
            HttpErrorKind::Certificate(problem) => match problem {
                CertificateProblem::Expired => "CERT_HAS_EXPIRED",
                CertificateProblem::NotYetValid => "CERT_NOT_YET_VALID",
                CertificateProblem::UnknownIssuer => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
                CertificateProblem::WrongName => "ERR_TLS_CERT_ALTNAME_INVALID",
                CertificateProblem::Revoked => "CERT_REVOKED",
                CertificateProblem::BadSignature | CertificateProblem::Other(_) => "CERT_UNTRUSTED",
            },
            HttpErrorKind::NoRoots { .. } => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
            HttpErrorKind::NotTls => "ERR_SSL_WRONG_VERSION_NUMBER",
            HttpErrorKind::Tls { .. } => "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
            HttpErrorKind::Reset | HttpErrorKind::Closed => "ECONNRESET",
            HttpErrorKind::BodyCut { .. } => "ERR_STREAM_PREMATURE_CLOSE",
            HttpErrorKind::Timeout { .. } => "ETIMEDOUT",
            HttpErrorKind::NotHttp { .. } => "HPE_INVALID_CONSTANT",
            HttpErrorKind::StreamRefused | HttpErrorKind::StreamEnded { .. } => "ERR_HTTP2_STREAM_ERROR",
            HttpErrorKind::RequestBody => "ABORT_ERR",
            HttpErrorKind::HeadTooLarge { .. }
            | HttpErrorKind::BodyTooLarge { .. }
            | HttpErrorKind::Header(_) => return None,
            HttpErrorKind::Proxy { problem, .. } => match problem {
                ProxyProblem::Setting(_) => "ERR_INVALID_URL",
                ProxyProblem::Connect(kind) => return kind.errno(),
                ProxyProblem::HungUp => "ECONNRESET",
                ProxyProblem::NotHttp => "HPE_INVALID_CONSTANT",
                ProxyProblem::Credential | ProxyProblem::Refused { .. } => return None,
            },
        })
    }
}

impl From<Expired> for HttpErrorKind {
    fn from(expired: Expired) -> Self {
        HttpErrorKind::Timeout { limit: expired.limit, after: expired.after }
    }
}

/// The evidence for the classifier.
impl From<&HttpError> for Signal {
    fn from(error: &HttpError) -> Self {
        Signal {
            surface: Surface::Response,
            dispatch: error.dispatch,
            errno: error.errno().map(str::to_owned),
            status: error.proxy_status(),
            // A connection that cannot be made is the network's trouble, the other limits are ours.
            timed_out: matches!(error.timeout(), Some(Limit::Idle | Limit::Total)),
            stderr: error.to_string().into_bytes(),
            ..Signal::default()
        }
    }
}

impl From<HttpError> for Signal {
    fn from(error: HttpError) -> Self {
        Signal::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_classify::Classifier;
    use backstop_core::Reason;

    fn text(text: &str) -> SafeText {
        SafeText::new(text)
    }

    #[test]
    fn the_classifier_knows_what_each_error_is() {
        let classifier = Classifier::builtin();
        let timeout = |limit| HttpErrorKind::Timeout { limit, after: Duration::from_secs(5) };
        let proxy = |problem| HttpErrorKind::Proxy { proxy: text("http://proxy:8080"), problem };
        for (kind, dispatch, reason) in [
            (
                HttpErrorKind::NameNotFound { detail: text("Name or service not known") },
                Dispatch::NotDispatched,
                Reason::NetworkPermanent,
            ),
            (
                HttpErrorKind::NameServer { detail: text("Temporary failure in name resolution") },
                Dispatch::NotDispatched,
                Reason::NetworkTransient,
            ),
            (HttpErrorKind::Refused, Dispatch::NotDispatched, Reason::NetworkTransient),
            (
                HttpErrorKind::Unreachable { detail: text("No route to host (os error 113)") },
                Dispatch::NotDispatched,
                Reason::NetworkTransient,
            ),
            (
                HttpErrorKind::Certificate(CertificateProblem::Expired),
                Dispatch::NotDispatched,
                Reason::NetworkPermanent,
            ),
            (
                HttpErrorKind::Certificate(CertificateProblem::WrongName),
                Dispatch::NotDispatched,
                Reason::NetworkPermanent,
            ),
            (HttpErrorKind::NotTls, Dispatch::NotDispatched, Reason::NetworkPermanent),
            (HttpErrorKind::Reset, Dispatch::Lost, Reason::NetworkTransient),
            (HttpErrorKind::Closed, Dispatch::Lost, Reason::NetworkTransient),
            (HttpErrorKind::BodyCut { received: 7 }, Dispatch::Lost, Reason::NetworkTransient),
            (HttpErrorKind::StreamRefused, Dispatch::NotDispatched, Reason::NetworkTransient),
            (timeout(Limit::Connect), Dispatch::NotDispatched, Reason::NetworkTransient),
            (timeout(Limit::Idle), Dispatch::Lost, Reason::NetworkTransient),
            (timeout(Limit::Total), Dispatch::Lost, Reason::NetworkTransient),
            (
                HttpErrorKind::NotHttp { detail: text("invalid HTTP version parsed") },
                Dispatch::Answered,
                Reason::NetworkPermanent,
            ),
            (
                proxy(ProxyProblem::Connect(Box::new(HttpErrorKind::Refused))),
                Dispatch::NotDispatched,
                Reason::NetworkTransient,
            ),
            (proxy(ProxyProblem::HungUp), Dispatch::NotDispatched, Reason::NetworkTransient),
            (proxy(ProxyProblem::Refused { status: 503 }), Dispatch::NotDispatched, Reason::NetworkTransient),
            (proxy(ProxyProblem::Refused { status: 403 }), Dispatch::NotDispatched, Reason::AuthError),
            (
                proxy(ProxyProblem::Setting(AddressError::Scheme)),
                Dispatch::NotDispatched,
                Reason::NetworkPermanent,
            ),
        ] {
            let error = HttpError::new("https://h".to_owned(), kind, dispatch);
            let signal = Signal::from(&error);
            assert_eq!(signal.dispatch, dispatch);
            let fault = classifier.classify(&signal).unwrap();
            assert_eq!(fault.reason, reason, "{error}");
            assert!(error.to_string().starts_with("https://h: ") && !error.hint().is_empty());
        }
    }
}
