//! As much of HTTP/1.1 as one request needs.
//!
//! Everything is bounded: connecting, each write and each read by a step, all of it together by a total, the answer by its
//! head and the beginning of its body. Nothing is followed, nothing is kept open. It must not know what is sent.
#![allow(clippy::disallowed_methods)] // The monotonic clock: a request runs in real time.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How much of an answer's head is read.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How much of an answer's body is read.
const BODY_BYTES_MAX: usize = 4 << 10;
/// How many headers are kept.
const HEADERS_MAX: usize = 64;
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 4;

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connecting, a write, a read.
    pub step: Duration,
    /// All of it, but for finding the address of a name.
    pub total: Duration,
}

/// A POST of JSON.
#[derive(Debug, Clone, Copy)]
pub struct Post<'p> {
    /// A name or an address, without brackets.
    pub host: &'p str,
    /// The port.
    pub port: u16,
    /// The host as the request names it.
    pub authority: &'p str,
    /// What is asked for; begins with a slash.
    pub path: &'p str,
    /// Headers beside the usual ones. Neither names nor values may have line ends: those that do are left out.
    pub headers: &'p [(String, String)],
    /// The JSON.
    pub body: &'p [u8],
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its status; none where it is not HTTP.
    pub status: Option<u16>,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The beginning of its body, where it did not say that all is well.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether it says that all is well.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether it only announces another one.
    fn only_announces(&self) -> bool {
        self.status.is_some_and(|status| (100..200).contains(&status))
    }

    /// Reads heads and the beginning of a body, as `curl --include` prints them. Heads that only announce another are passed
    /// over.
    pub fn parse(mut bytes: &[u8]) -> Self {
        loop {
            let Some(end) = head_end(bytes) else { return Self::from_head(bytes) };
            let mut answer = Self::from_head(&bytes[..end]);
            bytes = &bytes[end..];
            if !answer.only_announces() {
                answer.body = bytes[..bytes.len().min(BODY_BYTES_MAX)].to_vec();
                return answer;
            }
        }
    }

    fn from_head(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let status = lines.next().and_then(status);
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers =
            if status.is_some() { lines.filter_map(header).take(HEADERS_MAX).collect() } else { Vec::new() };
        Self { status, headers, body: Vec::new() }
    }
}

fn status(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("HTTP/")?;
    rest.split_whitespace().nth(1)?.parse().ok().filter(|status| (100..600).contains(status))
}

/// Where a head ends, its empty line included.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let crlf = bytes.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
    let lf = bytes.windows(2).position(|w| w == b"\n\n").map(|at| at + 2);
    crlf.into_iter().chain(lf).min()
}

/// Sends it, and gives the answer.
pub fn post(post: &Post<'_>, limits: Limits) -> Result<Answer> {
    let until = Instant::now() + limits.total;
    let mut stream = connect(post, limits.step.min(limits.total))?;
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\nuser-agent: backstop/{}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n",
        post.path,
        post.authority,
        env!("CARGO_PKG_VERSION"),
        post.body.len()
    );
    let one_line = |text: &str| !text.bytes().any(|b| b < b' ' || b == 0x7f);
    for (name, value) in post.headers.iter().filter(|(name, value)| one_line(name) && one_line(value)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(post.body);
    stream.set_write_timeout(Some(limits.step))?;
    stream.write_all(&request).map_err(timed_out)?;
    read(&mut stream, limits.step, until)
}

fn connect(post: &Post<'_>, step: Duration) -> Result<TcpStream> {
    let mut last = Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (post.host, post.port).to_socket_addrs()?.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, step) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads the head, and where it is not a success the beginning of the body. That a body breaks off says nothing.
fn read(stream: &mut TcpStream, step: Duration, until: Instant) -> Result<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let mut more = |bytes: &mut Vec<u8>| -> Result<usize> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new(ErrorKind::TimedOut, "it did not answer in time"));
        }
        stream.set_read_timeout(Some(step.min(left)))?;
        let n = stream.read(&mut piece).map_err(timed_out)?;
        bytes.extend_from_slice(&piece[..n]);
        Ok(n)
    };
    let (answer, end) = loop {
        while head_end(&bytes).is_none() && bytes.len() < HEAD_BYTES_MAX {
            let n = more(&mut bytes)?;
            let line = bytes.iter().position(|b| *b == b'\n');
            let strange = line.is_some_and(|at| status(&String::from_utf8_lossy(&bytes[..at])).is_none());
            if n == 0 || strange {
                break;
            }
        }
        if bytes.is_empty() {
            return Err(Error::new(ErrorKind::UnexpectedEof, "it hung up without an answer"));
        }
        let end = head_end(&bytes).unwrap_or(bytes.len());
        let answer = Answer::from_head(&bytes[..end]);
        if !answer.only_announces() {
            break (answer, end);
        }
        bytes.drain(..end);
    };
    if answer.status.is_none() || answer.is_success() {
        return Ok(answer);
    }
    let length = answer.headers.iter().find(|(name, _)| name == "content-length");
    let length =
        length.and_then(|(_, value)| value.parse().ok()).unwrap_or(BODY_BYTES_MAX).min(BODY_BYTES_MAX);
    while bytes.len() < end + length && matches!(more(&mut bytes), Ok(n) if n > 0) {}
    let body = bytes[end..bytes.len().min(end + length)].to_vec();
    Ok(Answer { body, ..answer })
}

/// A timeout of a socket is told as one, whatever the system calls it.
fn timed_out(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "it did not answer in time"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = Answer::parse(b"HTTP/2 429 \r\nRetry-After: 7\r\n\r\nslow down");
        assert_eq!(answer.status, Some(429));
        assert_eq!(answer.headers, [("retry-after".to_owned(), "7".to_owned())]);
        assert_eq!(answer.body, b"slow down");
        let after = Answer::parse(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok");
        assert!(after.is_success() && after.body == b"ok", "{after:?}");
        for announced in [
            &b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 y\r\n\r\n"[..],
            b"HTTP/1.1 204 y\r\n\r\n",
        ] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                stream.write_all(announced).unwrap();
            });
            let limits = Limits { step: Duration::from_secs(5), total: Duration::from_secs(5) };
            let given =
                Post { host: "127.0.0.1", port, authority: "x", path: "/", headers: &[], body: b"{}" };
            assert_eq!(post(&given, limits).unwrap().status, Some(204));
            server.join().unwrap();
        }
        for strange in [&b""[..], b"SSH-2.0\r\n", b"HTTP/1.1 99 x\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"\n\n\n"] {
            assert_eq!(Answer::parse(strange).status, None);
        }
    }
}
