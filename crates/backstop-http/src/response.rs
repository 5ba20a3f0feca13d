//! What came back: the head at once, the body as it arrives.

use crate::connection::Connection;
use crate::failure::body_kind;
use crate::headers::Headers;
use crate::limits::{Deadlines, Limit};
use crate::pool::Pool;
use crate::{Chunk, HttpError, HttpErrorKind, body::Upload};
use backstop_core::{Dispatch, Signal};
use hyper::body::{Body, Incoming};
use std::pin::Pin;
use std::sync::Arc;

/// The version of HTTP that a response came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

/// A response. A redirect is one like any other.
#[derive(Debug)]
pub struct Response {
    status: u16,
    version: Version,
    headers: Headers,
    body: BodyReader,
}

impl Response {
    /// The status, e.g. 200.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The version of HTTP.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Takes the headers, so that they are in memory only as long as somebody needs them.
    pub fn take_headers(&mut self) -> Headers {
        std::mem::take(&mut self.headers)
    }

    /// The next piece of the body, as it arrives; none at its end. After an error there is no more.
    /// Trailers are left out.
    pub async fn chunk(&mut self) -> Result<Option<Chunk>, HttpError> {
        self.body.next().await
    }

    /// The whole body. A body that is longer than `bytes_max` is an error, and is not read further.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Vec<u8>, HttpError> {
        let announced = self.body.announced();
        let too_large = HttpErrorKind::BodyTooLarge { bytes_max };
        if announced.is_some_and(|length| length > bytes_max as u64) {
            return Err(self.body.fail(too_large, Dispatch::Answered));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = self.body.next().await? {
            if piece.len() > bytes_max - bytes.len() {
                return Err(self.body.fail(too_large, Dispatch::Answered));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// The beginning of the body, for an error message: at most `bytes_max` bytes. The rest is not
    /// read, and a body that breaks off ends there.
    pub async fn body_start(&mut self, bytes_max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < bytes_max {
            let Ok(Some(piece)) = self.body.next().await else { break };
            bytes.extend_from_slice(&piece[..piece.len().min(bytes_max - bytes.len())]);
        }
        bytes
    }
}

impl Response {
    /// The evidence for the classifier, where the response is a failure: its status, its headers,
    /// and as much of its body as was read.
    pub fn signal(&self, body: Vec<u8>) -> Signal {
        Signal { headers: self.headers.to_pairs(), ..Signal::answered(self.status).text(body) }
    }
}

/// Everything that a response needs to know about how it came.
pub(crate) struct Origin {
    pub(crate) place: String,
    pub(crate) connection: Connection,
    pub(crate) upload: Arc<Upload>,
    pub(crate) deadlines: Deadlines,
    pub(crate) pool: Pool,
}

impl Response {
    pub(crate) async fn new(response: hyper::Response<Incoming>, origin: Origin) -> Self {
        let (head, incoming) = response.into_parts();
        let version = match head.version {
            hyper::Version::HTTP_2 => Version::Http2,
            hyper::Version::HTTP_11 => Version::Http11,
            _ => Version::Http10,
        };
        let Origin { place, connection, upload, deadlines, pool } = origin;
        let mut body = BodyReader {
            incoming: Some(incoming),
            connection: Some(connection),
            upload,
            received: 0,
            place,
            deadlines,
            pool,
        };
        if body.incoming.as_ref().is_some_and(Body::is_end_stream) {
            body.finish().await;
        }
        Self { status: head.status.as_u16(), version, headers: Headers(head.headers), body }
    }
}

/// Reads a body, and gives the connection back when it has ended.
struct BodyReader {
    incoming: Option<Incoming>,
    connection: Option<Connection>,
    upload: Arc<Upload>,
    received: u64,
    place: String,
    deadlines: Deadlines,
    pool: Pool,
}

impl BodyReader {
    /// The length that the head announced.
    fn announced(&self) -> Option<u64> {
        self.incoming.as_ref().and_then(|incoming| incoming.size_hint().exact())
    }

    async fn next(&mut self) -> Result<Option<Chunk>, HttpError> {
        loop {
            let Some(incoming) = &mut self.incoming else { return Ok(None) };
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *incoming).poll_frame(cx));
            match self.deadlines.wait(Limit::Idle, frame).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        self.received += data.len() as u64;
                        return Ok(Some(Chunk(data)));
                    }
                }
                Ok(None) => {
                    self.finish().await;
                    return Ok(None);
                }
                Ok(Some(Err(error))) => {
                    let kind = body_kind(&error, self.received);
                    return Err(self.fail(kind, Dispatch::Lost));
                }
                Err(expired) => return Err(self.fail(expired.into(), Dispatch::Lost)),
            }
        }
    }

    /// Ends the body and its connection.
    fn fail(&mut self, kind: HttpErrorKind, dispatch: Dispatch) -> HttpError {
        self.incoming = None;
        self.connection = None;
        HttpError::new(self.place.clone(), kind, dispatch)
    }

    /// The body has ended: its connection can be used again.
    async fn finish(&mut self) {
        self.incoming = None;
        // A server that answers before it has the whole request is of no further use.
        if let Some(mut connection) = self.connection.take()
            && self.upload.is_done()
            && connection.becomes_ready().await
        {
            self.pool.put(&self.place, connection);
        }
    }
}

impl std::fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ended = self.incoming.is_none();
        f.debug_struct("Body").field("received", &self.received).field("ended", &ended).finish()
    }
}
