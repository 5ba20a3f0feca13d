//! What a client asks for.

use crate::{Chunk, Headers, Method};
use hyper::body::{Body, Incoming};
use std::pin::Pin;
use std::time::Duration;

/// How long a client may be silent in the middle of a request's body.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What a client asks for.
#[derive(Debug)]
pub struct ServerRequest {
    method: Method,
    target: String,
    headers: Headers,
    body: Incoming,
}

/// Why the body of a request was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyProblem {
    /// It is longer than it may be.
    #[error("the request is too large")]
    TooLarge,
    /// The client hung up, or what it sent is not valid.
    #[error("the request was cut off")]
    CutOff,
    /// The client was silent for too long.
    #[error("the rest of the request did not come")]
    Silent,
}

impl BodyProblem {
    /// The status that says so.
    pub fn status(self) -> u16 {
        match self {
            Self::TooLarge => 413,
            Self::CutOff => 400,
            Self::Silent => 408,
        }
    }
}

impl ServerRequest {
    pub(super) fn new(request: hyper::Request<Incoming>) -> Self {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Self { method: Method(head.method), target, headers: Headers(head.headers), body }
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, e.g. `/v1/items`.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Path and query, e.g. `/v1/items?page=2`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The headers, all of them as they came.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The length of the body, where the client announced it.
    pub fn announced(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Chunk>, BodyProblem> {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let Ok(frame) = tokio::time::timeout(SILENCE_MAX, frame).await else {
                return Err(BodyProblem::Silent);
            };
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(BodyProblem::CutOff),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(Chunk(data)));
                    }
                }
            }
        }
    }

    /// The whole body, which may have `bytes_max` bytes. Where its length is known, it is in memory
    /// once.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Chunk, BodyProblem> {
        let announced = self.announced().unwrap_or(0);
        let announced = usize::try_from(announced).map_err(|_| BodyProblem::TooLarge)?;
        if announced > bytes_max {
            return Err(BodyProblem::TooLarge);
        }
        let Some(first) = self.chunk().await? else { return Ok(Chunk::default()) };
        // Most requests are one piece.
        if first.len() == announced {
            return Ok(first);
        }
        let mut bytes = Vec::with_capacity(announced.max(first.len()));
        bytes.extend_from_slice(&first);
        drop(first);
        while let Some(piece) = self.chunk().await? {
            if piece.len() > bytes_max - bytes.len().min(bytes_max) {
                return Err(BodyProblem::TooLarge);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.into())
    }
}
