//! A request to a collector: connecting, writing and reading are each bounded by a second.

use backstop_config::Endpoint;
use backstop_notify::http::{Limits, Post, post as send};
use std::io::Result;
use std::time::Duration;

/// How long connecting, a write or a read may take, and all of it.
const LIMITS: Limits = Limits { step: Duration::from_secs(1), total: Duration::from_secs(2) };

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
    let whole = shown(endpoint);
    let authority = whole.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let path = format!("{}{below}", endpoint.path);
    let Endpoint { host, port, .. } = endpoint;
    let request = Post { host, port: *port, authority, path: &path, headers: &[], body };
    Ok(send(&request, LIMITS)?.status)
}
