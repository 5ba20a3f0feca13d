//! What a client is answered: all at once, or written while it is read.

use crate::{Chunk, Headers};
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    headers: Headers,
    body: AnswerBody,
}

/// The body of an answer that must not look complete: the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer was cut off")]
pub struct Cut;

impl Answer {
    /// An answer without a body.
    pub fn new(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        Self { status, headers: Headers::new(), body: AnswerBody::Whole(None) }
    }

    /// A line of plain text.
    pub fn text(status: u16, text: &str) -> Self {
        let this = Self::new(status).header("content-type", "text/plain; charset=utf-8");
        this.body(text.as_bytes().to_vec())
    }

    /// JSON.
    pub fn json(status: u16, json: impl Into<Chunk>) -> Self {
        Self::new(status).header("content-type", "application/json").body(json)
    }

    /// With a header, beside others of the same name. What cannot be sent is left out.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let _ = self.headers.add(name, value);
        self
    }

    /// With these headers instead of its own.
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Chunk>) -> Self {
        self.body = AnswerBody::Whole(Some(body.into().0));
        self
    }

    /// With a body that `write` writes while the client reads it: it waits while the client takes
    /// no more, and is dropped when the client hangs up.
    pub fn written<W, F>(mut self, write: W) -> Self
    where
        W: FnOnce(AnswerWriter) -> F,
        F: Future<Output = Result<(), Cut>> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(1);
        let writing: Writing = Box::pin(write(AnswerWriter(sender)));
        self.body = AnswerBody::Written { writing: Some(writing), pieces, length: None };
        self
    }

    /// With the length of a body that is written, where it is known. The answer to a `HEAD` says
    /// the length of the body that it does not have.
    pub fn length(mut self, bytes: Option<u64>) -> Self {
        if let AnswerBody::Written { length, .. } = &mut self.body {
            *length = bytes;
        }
        self
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn into_hyper(self) -> hyper::Response<AnswerBody> {
        let mut response = hyper::Response::new(self.body);
        *response.status_mut() = self.status;
        let mut headers = self.headers.0;
        // How a body is framed is the server's to say.
        crate::headers::remove_hop_by_hop(&mut headers);
        *response.headers_mut() = headers;
        response
    }
}

/// Writes the body of an answer.
#[derive(Debug)]
pub struct AnswerWriter(mpsc::Sender<Bytes>);

impl AnswerWriter {
    /// Writes a piece; waits while the client takes no more.
    pub async fn write(&self, piece: impl Into<Chunk>) -> Result<(), Cut> {
        let Chunk(piece) = piece.into();
        if piece.is_empty() {
            return Ok(());
        }
        self.0.send(piece).await.map_err(|_| Cut)
    }
}

type Writing = Pin<Box<dyn Future<Output = Result<(), Cut>> + Send>>;

/// The body of an answer.
pub(super) enum AnswerBody {
    Whole(Option<Bytes>),
    /// What is written is taken by whoever drives the writer: no other task is needed.
    Written {
        writing: Option<Writing>,
        pieces: mpsc::Receiver<Bytes>,
        length: Option<u64>,
    },
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "{} bytes", bytes.as_ref().map_or(0, Bytes::len)),
            Self::Written { .. } => f.write_str("written while it is read"),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let (writing, pieces) = match self.get_mut() {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Written { writing, pieces, .. } => (writing, pieces),
        };
        let piece = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        if let Ok(bytes) = pieces.try_recv() {
            return piece(bytes);
        }
        let Some(future) = writing else { return Poll::Ready(None) };
        let ended = future.as_mut().poll(cx);
        match (ended, pieces.try_recv()) {
            (Poll::Ready(Err(cut)), _) => {
                *writing = None;
                Poll::Ready(Some(Err(cut)))
            }
            (Poll::Ready(Ok(())), last) => {
                *writing = None;
                last.map_or(Poll::Ready(None), piece)
            }
            // A writer that waits for room is woken by what was just taken.
            (Poll::Pending, Ok(bytes)) => piece(bytes),
            (Poll::Pending, Err(_)) => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Written { length, .. } => length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// Headers of an answer, for whoever reads them back.
impl Answer {
    /// The value of a header, if there is one.
    pub fn header_text(&self, name: &str) -> Option<&str> {
        self.headers.text(name)
    }

    /// Sets a header, in the place of others of its name. What cannot be sent is left out.
    pub fn set_header(&mut self, name: &'static str, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.0.insert(HeaderName::from_static(name), value);
        }
    }
}
