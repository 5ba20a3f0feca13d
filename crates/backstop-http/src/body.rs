//! Bodies: what a request sends, and the pieces that a response is read in.
//!
//! A body that is not sent to its end must never look complete to the server: a stream ends only
//! when its sender says so.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Bytes are handed to the connection in pieces of this size, so that progress can be seen.
const PIECE_BYTES: usize = 32 << 10;
/// How many pieces of a stream wait for the connection before its sender has to wait.
const PIECES_WAITING_MAX: usize = 4;

/// Bytes of a body. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Chunk(pub(crate) Bytes);

impl std::ops::Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

/// What is in a body may be a secret and is not shown.
impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chunk({} bytes)", self.0.len())
    }
}

/// The body of a request.
#[derive(Debug)]
pub struct RequestBody(Source);

enum Source {
    Bytes(Bytes),
    Stream { pieces: mpsc::Receiver<Piece>, length: Option<u64> },
}

enum Piece {
    Data(Chunk),
    End,
}

/// What is in a body may be a secret and is not shown.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Source::Stream { length: Some(length), .. } => write!(f, "a stream of {length} bytes"),
            Source::Stream { length: None, .. } => f.write_str("a stream"),
        }
    }
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self(Source::Bytes(Bytes::new()))
    }

    /// A body that is sent while it is written. Where its length is known, the request announces
    /// it, and exactly so many bytes have to be sent.
    pub fn stream(length: Option<u64>) -> (BodySender, Self) {
        let (sender, pieces) = mpsc::channel(PIECES_WAITING_MAX);
        (BodySender(sender), Self(Source::Stream { pieces, length }))
    }

    pub(crate) fn into_outgoing(self) -> (Outgoing, Arc<Upload>) {
        let left = match &self.0 {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::Stream { length, .. } => *length,
        };
        let upload = Arc::new(Upload::default());
        let known_empty = matches!(&self.0, Source::Bytes(bytes) if bytes.is_empty());
        upload.done.store(known_empty, Ordering::Relaxed);
        (Outgoing { source: self.0, left, upload: Arc::clone(&upload) }, upload)
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Source::Bytes(bytes.into()))
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Chunk> for RequestBody {
    fn from(chunk: Chunk) -> Self {
        Self(Source::Bytes(chunk.0))
    }
}

/// Writes the body of a request while it is sent. A body whose sender is dropped before
/// [`finish`](Self::finish) fails the request.
#[derive(Debug)]
pub struct BodySender(mpsc::Sender<Piece>);

/// The request has ended: nobody takes its body any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request has ended, its body is no longer read")]
pub struct BodyClosed;

impl BodySender {
    /// Sends a piece; waits while the server takes no more.
    pub async fn send(&mut self, piece: impl Into<Chunk>) -> Result<(), BodyClosed> {
        let piece = piece.into();
        if piece.is_empty() {
            return Ok(());
        }
        self.0.send(Piece::Data(piece)).await.map_err(|_| BodyClosed)
    }

    /// Says that the body is complete.
    pub async fn finish(self) -> Result<(), BodyClosed> {
        self.0.send(Piece::End).await.map_err(|_| BodyClosed)
    }
}

/// What is known of a body on its way out.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pieces: AtomicU64,
    waits_for_sender: AtomicBool,
    done: AtomicBool,
    failed: AtomicBool,
}

impl Upload {
    /// How many pieces the connection has taken: while it grows, the server is not idle.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    /// Whether the next piece has to come from the body's sender, so that the server cannot go on.
    pub(crate) fn waits_for_sender(&self) -> bool {
        self.waits_for_sender.load(Ordering::Relaxed)
    }

    /// Whether the connection has taken all of it.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Whether the body's sender gave up or broke its word about the length.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// A request's body as the connection takes it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    source: Source,
    /// How many bytes are still to come, where that is known.
    left: Option<u64>,
    upload: Arc<Upload>,
}

/// The sender of a body gave up, or sent another length than announced.
#[derive(Debug, thiserror::Error)]
#[error("the request's body was not sent to its end")]
pub(crate) struct BodyFailed;

impl Outgoing {
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFailed>>> {
        match &mut self.source {
            Source::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Bytes(bytes) => Poll::Ready(Some(Ok(bytes.split_to(bytes.len().min(PIECE_BYTES))))),
            Source::Stream { pieces, .. } => pieces.poll_recv(cx).map(|piece| match piece {
                Some(Piece::Data(Chunk(bytes))) => Some(Ok(bytes)),
                Some(Piece::End) => None,
                None => Some(Err(BodyFailed)),
            }),
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BodyFailed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailed>>> {
        let next = self.next(cx);
        self.upload.waits_for_sender.store(next.is_pending(), Ordering::Relaxed);
        let Poll::Ready(next) = next else { return Poll::Pending };
        let piece = match next {
            Some(Ok(piece)) => match self.left {
                Some(left) => left.checked_sub(piece.len() as u64).map(|left| {
                    self.left = Some(left);
                    Some(piece)
                }),
                None => Some(Some(piece)),
            },
            None if self.left.unwrap_or(0) == 0 => Some(None),
            None | Some(Err(BodyFailed)) => None,
        };
        let Some(piece) = piece else {
            self.upload.failed.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(BodyFailed)));
        };
        self.upload.pieces.fetch_add(1, Ordering::Relaxed);
        if piece.is_none() || self.left == Some(0) {
            self.upload.done.store(true, Ordering::Relaxed);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Bytes(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(body: &mut Outgoing) -> Poll<Option<Result<usize, ()>>> {
        let polled = Pin::new(body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        polled
            .map(|frame| frame.map(|frame| frame.map(|frame| frame.into_data().unwrap().len()).map_err(drop)))
    }

    #[test]
    fn bytes_go_out_in_pieces() {
        let (mut body, upload) = RequestBody::from(vec![0; PIECE_BYTES + 1]).into_outgoing();
        assert_eq!(body.size_hint().exact(), Some(PIECE_BYTES as u64 + 1));
        assert_eq!(poll(&mut body), Poll::Ready(Some(Ok(PIECE_BYTES))));
        assert!(!upload.is_done() && !body.is_end_stream());
        assert_eq!(poll(&mut body), Poll::Ready(Some(Ok(1))));
        assert!(upload.is_done() && body.is_end_stream());
        assert_eq!(poll(&mut body), Poll::Ready(None));
        assert_eq!(upload.pieces(), 3);
        assert!(RequestBody::empty().into_outgoing().1.is_done());
    }

    #[tokio::test]
    async fn a_stream_ends_only_when_its_sender_says_so() {
        let (mut sender, body) = RequestBody::stream(None);
        let (mut body, upload) = body.into_outgoing();
        assert!(poll(&mut body).is_pending() && upload.waits_for_sender());
        sender.send(b"abc".to_vec()).await.unwrap();
        sender.send(Vec::new()).await.unwrap();
        assert_eq!(poll(&mut body), Poll::Ready(Some(Ok(3))));
        sender.finish().await.unwrap();
        assert_eq!(poll(&mut body), Poll::Ready(None));
        assert!(upload.is_done() && !upload.failed());

        let (sender, body) = RequestBody::stream(None);
        let (mut body, upload) = body.into_outgoing();
        drop(sender);
        assert_eq!(poll(&mut body), Poll::Ready(Some(Err(()))));
        assert!(upload.failed() && !upload.is_done());
    }

    #[tokio::test]
    async fn a_stream_has_the_length_that_it_announced() {
        for (sent, fits) in [(2, false), (3, true), (4, false)] {
            let (mut sender, body) = RequestBody::stream(Some(3));
            let (mut body, upload) = body.into_outgoing();
            sender.send(vec![0; sent]).await.unwrap();
            sender.finish().await.unwrap();
            while matches!(poll(&mut body), Poll::Ready(Some(Ok(_)))) {}
            assert_eq!((upload.failed(), upload.is_done()), (!fits, fits), "{sent}");
        }
    }
}
