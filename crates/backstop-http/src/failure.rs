//! What the errors of the libraries below mean.

use crate::HttpErrorKind;
use crate::connection::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::tls::tls_kind;
use backstop_core::SafeText;
use hyper::HeaderMap;
use std::error::Error as StdError;
use std::io::ErrorKind;

/// What a system error is, on a connection or on the way to one.
pub(crate) fn io_kind(error: &std::io::Error) -> HttpErrorKind {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return tls_kind(tls);
    }
    let detail = || SafeText::new(error.to_string());
    match error.kind() {
        ErrorKind::ConnectionRefused => HttpErrorKind::Refused,
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        // The system's own limit for connecting, where it is shorter than ours.
        | ErrorKind::TimedOut => HttpErrorKind::Unreachable { detail: detail() },
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            HttpErrorKind::Reset
        }
        ErrorKind::UnexpectedEof | ErrorKind::NotConnected => HttpErrorKind::Closed,
        // Wrong chunk sizes: the system gives none of these for a socket.
        ErrorKind::InvalidData | ErrorKind::InvalidInput => HttpErrorKind::NotHttp { detail: detail() },
        kind => HttpErrorKind::Local { detail: detail(), errno: errno(kind, error.raw_os_error()) },
    }
}

/// The name of a system error, where it is one that a machine in trouble gives.
fn errno(kind: ErrorKind, code: Option<i32>) -> Option<&'static str> {
    // The same numbers on Linux and macOS.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    match (kind, code) {
        (ErrorKind::PermissionDenied, _) => Some("EACCES"),
        (ErrorKind::AddrNotAvailable, _) => Some("EADDRNOTAVAIL"),
        (ErrorKind::OutOfMemory, _) => Some("ENOMEM"),
        (_, Some(ENFILE)) => Some("ENFILE"),
        (_, Some(EMFILE)) => Some("EMFILE"),
        _ => None,
    }
}

/// What an error of the HTTP library is, before the response's head has arrived.
pub(crate) fn http_kind(error: &hyper::Error) -> HttpErrorKind {
    if error.is_parse_too_large() {
        return head_too_large();
    }
    if error.is_parse() {
        return HttpErrorKind::NotHttp { detail: SafeText::new(error.to_string()) };
    }
    if let Some(kind) = source_of(error).and_then(h2_kind) {
        return kind;
    }
    if let Some(error) = source_of::<std::io::Error>(error) {
        return io_kind(error);
    }
    if error.is_incomplete_message() || error.is_closed() {
        return HttpErrorKind::Closed;
    }
    // A request that was given back without being sent has what ended the connection as its cause.
    match error.source().and_then(|cause| cause.downcast_ref()) {
        Some(cause) => http_kind(cause),
        None if error.is_canceled() => HttpErrorKind::Closed,
        None => HttpErrorKind::NotHttp { detail: SafeText::new(error.to_string()) },
    }
}

/// Whether a head is larger than it may be. HTTP/1 is stopped earlier, while the head is read.
pub(crate) fn head_is_too_large(headers: &HeaderMap) -> bool {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    bytes > HEAD_BYTES_MAX || headers.len() > HEADERS_MAX
}

/// The error for a head that is larger than it may be.
pub(crate) fn head_too_large() -> HttpErrorKind {
    HttpErrorKind::HeadTooLarge { bytes_max: HEAD_BYTES_MAX, headers_max: HEADERS_MAX }
}

/// What an error is that ends a response's body after `received` bytes.
pub(crate) fn body_kind(error: &hyper::Error, received: u64) -> HttpErrorKind {
    match http_kind(error) {
        HttpErrorKind::Closed => HttpErrorKind::BodyCut { received },
        kind => kind,
    }
}

/// What an error of HTTP/2 is; none where it is the connection's.
fn h2_kind(error: &h2::Error) -> Option<HttpErrorKind> {
    if let Some(io) = error.get_io() {
        return Some(io_kind(io));
    }
    match error.reason() {
        Some(h2::Reason::REFUSED_STREAM) if error.is_remote() => Some(HttpErrorKind::StreamRefused),
        Some(_) if error.is_library() => {
            Some(HttpErrorKind::NotHttp { detail: SafeText::new(error.to_string()) })
        }
        Some(reason) => Some(HttpErrorKind::StreamEnded { detail: SafeText::new(reason.description()) }),
        None => None,
    }
}

/// The first cause of an error that is a `T`.
fn source_of<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
