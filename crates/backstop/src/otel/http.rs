//! As much of HTTP as one request to a collector needs.
//!
//! Everything is bounded: connecting, writing and reading each by a second, the answer by what its first line may take.

use crate::config::Endpoint;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long connecting, a write or a read may take.
const STEP_MAX: Duration = Duration::from_secs(1);
/// How much of the answer is read: its first line is all that counts.
const ANSWER_BYTES_MAX: u64 = 1024;
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 4;

/// `http://127.0.0.1:4318`.
pub(super) fn shown(endpoint: &Endpoint) -> String {
    let Endpoint { host, port, path } = endpoint;
    if host.contains(':') {
        format!("http://[{host}]:{port}{path}")
    } else {
        format!("http://{host}:{port}{path}")
    }
}

/// Sends JSON. Gives the status of the answer; none where it is not HTTP.
pub(super) fn post(endpoint: &Endpoint, below: &str, body: &[u8]) -> Result<Option<u16>> {
    let mut stream = connect(endpoint)?;
    stream.set_read_timeout(Some(STEP_MAX))?;
    stream.set_write_timeout(Some(STEP_MAX))?;
    let whole = shown(endpoint);
    let host = whole.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let head = format!(
        "POST {}{below} HTTP/1.1\r\nhost: {host}\r\nuser-agent: backstop/{}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        endpoint.path,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    stream.write_all(&request)?;
    status(&mut stream)
}

fn connect(endpoint: &Endpoint) -> Result<TcpStream> {
    let mut last = Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, STEP_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The status in the first line of an answer.
fn status(stream: &mut impl Read) -> Result<Option<u16>> {
    let mut line = Vec::new();
    BufReader::new(stream).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let Some(rest) = line.strip_prefix("HTTP/1.") else { return Ok(None) };
    Ok(rest.split_whitespace().nth(1).and_then(|status| status.parse().ok()))
}
