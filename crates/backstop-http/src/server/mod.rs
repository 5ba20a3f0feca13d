//! A small HTTP/1.1 server for clients on this machine: bounded connections, heads and bodies, who
//! may call, answers that are whole or written while they are read, and an orderly end.
//!
//! A [`ServerRequest`] enters a handler, an [`Answer`] leaves it. When a client hangs up, the
//! handler or the writer of its answer is dropped. It must not route, retry, log or decide what is
//! answered.

mod access;
mod answer;
mod request;

pub use access::Access;
pub use answer::{Answer, AnswerWriter, Cut};
pub use request::{BodyProblem, ServerRequest};

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How large the head of a request may be.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a client may take to send the head of a request, and between two requests.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// How long nothing is accepted after the system could not.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a server is bounded.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// How many connections are served at once. More wait.
    pub connections_max: usize,
    /// How long requests under way have after the end was asked for.
    pub drain_max: Duration,
}

/// Serves every request by `handler` until `stop` is ready, lets requests under way end, and
/// returns.
pub async fn serve<H, F>(
    listener: std::net::TcpListener,
    access: Access,
    limits: ServerLimits,
    stop: impl Future<Output = ()>,
    handler: H,
) -> std::io::Result<()>
where
    H: Fn(ServerRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let access = Arc::new(access.at(listener.local_addr()?.ip()));
    let handler = Arc::new(handler);
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let (ending, ended) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // Connections that have ended leave nothing behind.
        while connections.try_join_next().is_some() {}
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of files: the connection stays in the queue until one is free.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let connection = connection(stream, Arc::clone(&access), Arc::clone(&handler), ended.clone());
        connections.spawn(async move {
            connection.await;
            drop(slot);
        });
    }
    drop(listener);
    let _ = ending.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    // What has not ended by then is dropped with its connection.
    let _ = tokio::time::timeout(limits.drain_max, all).await;
    Ok(())
}

/// Refuses a head that is larger than it may be. The library stops reading somewhat later.
fn head_too_large(headers: &hyper::HeaderMap) -> Option<Answer> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    (bytes > HEAD_BYTES_MAX).then(|| Answer::text(431, "the head of the request is too large"))
}

async fn connection<H, F>(
    stream: TcpStream,
    access: Arc<access::AccessHere>,
    handler: Arc<H>,
    mut ended: watch::Receiver<bool>,
) where
    H: Fn(ServerRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let absolute = request.uri().scheme().and_then(|_| request.uri().host());
        let refused =
            head_too_large(request.headers()).or_else(|| access.refusal(absolute, request.headers()));
        let (handler, request) = (Arc::clone(&handler), ServerRequest::new(request));
        async move {
            let answer = match refused {
                Some(answer) => answer,
                None => handler(request).await,
            };
            Ok::<_, Infallible>(answer.into_hyper())
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ending = async { ended.wait_for(|ended| *ended).await.is_ok() };
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
