//! How messages reach a server and come back: over the standard streams of a program, or over HTTP.
//!
//! A message is handed over whole and leaves whole; what arrives goes to the [`Inbox`]. Whoever
//! waits for an answer learns there, too, that its message could not be sent, and how far it got.
//!
//! It must not know what a message means beyond its id.

mod http;
mod inbox;
mod sse;
mod stdio;

pub(crate) use http::{Http, HttpTarget};
pub(crate) use inbox::{CallEvent, Inbox, PeerMessage};
#[cfg(test)]
pub(crate) use sse::Events;
pub(crate) use stdio::{Program, Stdio};

use backstop_core::Dispatch;
use backstop_exec::Ended;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The pauses before a stream of a server is asked for again, by how often in a row it ended at
/// once.
const STREAM_PAUSES: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(60),
];
/// A stream that lasted so long did not end at once.
const STREAM_LASTED: Duration = Duration::from_secs(30);

/// Reads a stream of a server with `read`, again and again, until that says that there is none.
pub(crate) async fn repeat_stream<F: Future<Output = bool>>(mut read: impl FnMut() -> F) {
    let mut in_a_row = 0;
    loop {
        let began = Instant::now();
        if !read().await {
            return;
        }
        in_a_row = if began.elapsed() >= STREAM_LASTED { 0 } else { in_a_row + 1 };
        tokio::time::sleep(STREAM_PAUSES[in_a_row.min(STREAM_PAUSES.len() - 1)]).await;
    }
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message, without the end of its line.
    pub(crate) bytes: Vec<u8>,
    /// The id of the request, where it is one.
    pub(crate) id: Option<u64>,
    /// The method, where it has one.
    pub(crate) method: String,
    /// The tool or resource that it is about, for the headers of HTTP.
    pub(crate) about: Option<String>,
}

/// Why no answer came.
#[derive(Debug, Clone)]
pub(crate) struct TransportFailure {
    /// Whether the server may have got the message.
    pub(crate) dispatch: Dispatch,
    pub(crate) kind: TransportFailureKind,
}

#[derive(Debug, Clone)]
pub(crate) enum TransportFailureKind {
    /// The program has ended.
    Ended(Arc<Exit>),
    /// The connection is closed.
    Closed,
    /// The message could not be written.
    Write(String),
    /// No response came.
    Http { message: String, errno: Option<&'static str>, timed_out: bool },
    /// The response says that it failed.
    Status { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// The server has forgotten the session.
    SessionExpired,
    /// The response ended without an answer, or is none.
    NoAnswer(String),
    /// The answer is larger than what is read.
    TooLarge,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) ended: Ended,
    /// The end of what it wrote to standard error.
    pub(crate) stderr: String,
    /// What it wrote to standard output that was no message, if anything.
    pub(crate) garbage: Option<String>,
}

impl Exit {
    /// How it ended, as part of a sentence.
    pub(crate) fn words(&self) -> String {
        match (self.ended.signal_name(), self.ended.status.code) {
            (Some(signal), _) => format!("was ended by {signal}"),
            (None, Some(code)) => format!("exited with code {code}"),
            (None, None) => "ended".to_owned(),
        }
    }
}

impl TransportFailure {
    pub(crate) fn new(dispatch: Dispatch, kind: TransportFailureKind) -> Self {
        Self { dispatch, kind }
    }
}

/// The way to one server.
#[derive(Debug)]
pub(crate) enum Transport {
    Stdio(Stdio),
    Http(Http),
}

impl Transport {
    /// Hands a message over. What becomes of a request is told to whoever waits for it.
    pub(crate) async fn send(&self, message: Outgoing) {
        match self {
            Self::Stdio(stdio) => stdio.send(message).await,
            Self::Http(http) => http.send(message),
        }
    }

    /// The end of what the program has written to standard error.
    pub(crate) fn stderr(&self) -> String {
        match self {
            Self::Stdio(stdio) => stdio.tail().text(),
            Self::Http(_) => String::new(),
        }
    }

    /// Ends the program, or the session. Returns when it has ended.
    pub(crate) async fn stop(&self) {
        match self {
            Self::Stdio(stdio) => stdio.stop().await,
            Self::Http(http) => http.stop().await,
        }
    }
}
