//! One connection: sending a request over it, and knowing whether a byte of it was written.

use crate::body::Outgoing;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io::{IoSlice, Result as IoResult};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

/// How large the head of a response may be. Also the most that is read ahead of whoever reads a
/// body.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// How many headers a response may have.
pub(crate) const HEADERS_MAX: usize = 128;
/// How large a head is read in HTTP/2 before the whole stream is ended. More than it may be, so
/// that one that is a little too large can be called that.
const HTTP2_HEAD_BYTES_MAX: u32 = 2 * HEAD_BYTES_MAX as u32;
/// How much of a body HTTP/2 takes before it is read, for one response.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// And for all responses on one connection.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// How long an HTTP/1 connection has to get ready for the next request after a response has ended.
/// It needs no network for that.
const READY_MAX: Duration = Duration::from_millis(100);

/// A connection that a request can be sent over.
#[derive(Debug)]
pub(crate) enum Connection {
    /// For one request at a time.
    Http1(Http1),
    /// For many requests at a time.
    Http2(Http2),
}

/// An HTTP/1 connection. It is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: http1::SendRequest<Outgoing>,
    written: Arc<AtomicU64>,
    task: AbortHandle,
}

/// An HTTP/2 connection. It is closed when the last clone of this and the last response on it are
/// gone.
#[derive(Debug, Clone)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<Outgoing>,
    written: Arc<AtomicU64>,
}

/// Nothing is left half sent by a connection that nobody waits for any more.
impl Drop for Http1 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request that failed on a connection.
pub(crate) struct SendFailed {
    pub(crate) error: hyper::Error,
    /// The request came back, or no byte was written since it was handed over.
    pub(crate) unsent: bool,
}

impl Connection {
    pub(crate) async fn http1<S>(stream: S) -> hyper::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (io, written) = Counted::new(stream);
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await?;
        // What ends the connection is told to the request that uses it.
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self::Http1(Http1 { sender, written, task }))
    }

    pub(crate) async fn http2<S>(stream: S) -> hyper::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (io, written) = Counted::new(stream);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .max_header_list_size(HTTP2_HEAD_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self::Http2(Http2 { sender, written }))
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Whether a request can be sent now, as far as this side has noticed.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.sender.is_ready() && !connection.sender.is_closed(),
            Self::Http2(connection) => !connection.sender.is_closed(),
        }
    }

    /// Waits until the next request can be sent, now that a response has ended. False where the
    /// connection is closed instead.
    pub(crate) async fn becomes_ready(&mut self) -> bool {
        match self {
            Self::Http1(connection) => {
                matches!(tokio::time::timeout(READY_MAX, connection.sender.ready()).await, Ok(Ok(())))
            }
            Self::Http2(connection) => !connection.sender.is_closed(),
        }
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(
        &mut self,
        request: hyper::Request<Outgoing>,
    ) -> Result<hyper::Response<Incoming>, SendFailed> {
        let written = self.written();
        let sent = match self {
            Self::Http1(connection) => connection.sender.try_send_request(request).await,
            Self::Http2(connection) => connection.sender.try_send_request(request).await,
        };
        sent.map_err(|mut error| {
            let came_back = error.take_message().is_some();
            let unsent = self.written() == written || (came_back && self.is_http2());
            SendFailed { error: error.into_error(), unsent }
        })
    }

    fn written(&self) -> u64 {
        let written = match self {
            Self::Http1(connection) => &connection.written,
            Self::Http2(connection) => &connection.written,
        };
        written.load(Ordering::Acquire)
    }
}

/// A stream that counts what is written to it.
#[derive(Debug)]
struct Counted<S> {
    stream: S,
    written: Arc<AtomicU64>,
}

impl<S> Counted<S> {
    fn new(stream: S) -> (Self, Arc<AtomicU64>) {
        let written = Arc::new(AtomicU64::new(0));
        (Self { stream, written: Arc::clone(&written) }, written)
    }

    fn count(&self, result: Poll<IoResult<usize>>) -> Poll<IoResult<usize>> {
        if let Poll::Ready(Ok(n)) = &result {
            self.written.fetch_add(*n as u64, Ordering::Release);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<IoResult<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<IoResult<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<IoResult<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestBody;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn request() -> hyper::Request<Outgoing> {
        hyper::Request::new(RequestBody::from(b"body".to_vec()).into_outgoing().0)
    }

    /// The peer is gone, and the connection has not noticed: the request is handed over, and comes
    /// back.
    #[tokio::test]
    async fn a_request_on_a_connection_that_has_died_is_unsent() {
        let (client, mut server) = tokio::io::duplex(1 << 16);
        let mut connection = Connection::http1(client).await.unwrap();
        let (response, _) = tokio::join!(connection.send(request()), async {
            let _ = server.read(&mut [0; 4096]).await;
            server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await
        });
        drop(response.ok().unwrap());
        assert!(connection.becomes_ready().await && connection.is_open());
        drop(server);
        assert!(connection.is_open(), "nobody has looked yet");
        let failed = connection.send(request()).await.err().unwrap();
        assert!(failed.unsent, "{:?}", failed.error);
        assert!(!connection.is_open());
    }

    #[tokio::test]
    async fn a_request_of_which_one_byte_was_written_is_not_unsent() {
        // Room for one byte; the peer goes away without reading it.
        let (client, server) = tokio::io::duplex(1);
        let mut connection = Connection::http1(client).await.unwrap();
        let (failed, ()) = tokio::join!(connection.send(request()), async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            drop(server);
        });
        assert!(!failed.err().unwrap().unsent);
    }
}
