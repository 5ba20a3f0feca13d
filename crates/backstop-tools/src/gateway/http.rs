//! The gateway over streamable HTTP, on one path.
//!
//! A client of the old era has a session, by the header that it gets with the answer to
//! `initialize`; one of the modern era has none. A call is answered as a stream of events, so that
//! progress and questions come before its result; everything else as JSON.
//!
//! Requests from web pages are refused: the host and the origin have to be this machine, or what
//! the settings allow. Beyond loopback a token is asked for.

use super::session::OUT_MAX;
use super::{Gateway, Session, lock};
use crate::jsonrpc::{self, MESSAGE_BYTES_MAX, Message, PARSE_ERROR, RpcError, raw};
use backstop_core::SafeText;
use backstop_engine::Cancel;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

/// The path that is served.
const PATH: &str = "/mcp";
/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// How many sessions there may be. The oldest one goes.
const SESSIONS_MAX: usize = 256;
/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 256;

/// Who may call.
#[derive(Debug, Clone, Default)]
pub struct HttpAccess {
    /// The token that every request has to have, where one is asked for.
    pub token: Option<String>,
}

/// The sessions of clients of the old era.
#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, (u64, Arc<HttpSession>)>,
    next: u64,
}

/// A session, and what waits for a stream of its client.
struct HttpSession {
    session: Arc<Session>,
    /// What is sent to the client beside answers; taken by its stream.
    rest: Mutex<Option<mpsc::Receiver<Vec<u8>>>>,
}

struct Server {
    gateway: Arc<Gateway>,
    access: HttpAccess,
    sessions: Mutex<Sessions>,
    /// Whether only this machine can connect.
    loopback: bool,
}

type Answer = Response<OutBody>;

impl Gateway {
    /// Serves clients over HTTP until `cancel` fires, then ends all servers.
    pub async fn serve_http(
        self: &Arc<Self>,
        listener: std::net::TcpListener,
        access: HttpAccess,
        cancel: &Cancel,
    ) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let loopback = listener.local_addr()?.ip().is_loopback();
        let server =
            Arc::new(Server { gateway: Arc::clone(self), access, sessions: Mutex::default(), loopback });
        let looking = tokio::spawn(Arc::clone(self).look_after(cancel.clone()));
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = cancel.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else { continue };
            let _ = stream.set_nodelay(true);
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let server = Arc::clone(&server);
                    async move { Ok::<_, Infallible>(server.answer(request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                drop(slot);
            });
        }
        looking.abort();
        for (_, session) in lock(&server.sessions).by_id.values() {
            session.session.cancel_all();
        }
        self.toolbox().close().await;
        Ok(())
    }
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if let Err(refused) = self.check(request.headers()) {
            return *refused;
        }
        if request.uri().path() != PATH {
            return words(StatusCode::NOT_FOUND, &format!("the gateway is at {PATH}"));
        }
        let session_id = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match *request.method() {
            Method::POST => self.post(request, session_id).await,
            Method::GET => self.stream(session_id.as_deref()),
            Method::DELETE => self.goodbye(session_id.as_deref()),
            _ => words(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE"),
        }
    }

    /// Refuses web pages and strangers.
    fn check(&self, headers: &HeaderMap) -> Result<(), Box<Answer>> {
        let refused = |why: &str| Err(Box::new(words(StatusCode::FORBIDDEN, why)));
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
        if self.loopback {
            let host = text("host").unwrap_or_default();
            if !is_local(&host) {
                return refused("the host is not this machine");
            }
            if let Some(origin) = text("origin")
                && !origin.split_once("://").is_some_and(|(_, host)| is_local(host))
            {
                return refused("requests from other origins are refused");
            }
        } else if text("origin").is_some() {
            return refused("requests from web pages are refused");
        }
        if let Some(token) = &self.access.token {
            let given = text("authorization").unwrap_or_default();
            let given = given.strip_prefix("Bearer ").unwrap_or_default();
            if !is_same(given.as_bytes(), token.as_bytes()) {
                let mut answer = words(StatusCode::UNAUTHORIZED, "a bearer token is needed");
                answer.headers_mut().insert("www-authenticate", HeaderValue::from_static("Bearer"));
                return Err(Box::new(answer));
            }
        }
        Ok(())
    }

    async fn post(&self, request: Request<Incoming>, session_id: Option<String>) -> Answer {
        let streams = request
            .headers()
            .get("accept")
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/event-stream"));
        let body = match read(request.into_body()).await {
            Ok(body) => body,
            Err((status, why)) => return words(status, why),
        };
        let message = match Message::parse(&body) {
            Ok(message) => message,
            Err(bad) => {
                let error = Err(RpcError::new(PARSE_ERROR, bad.to_string()));
                return json(StatusCode::BAD_REQUEST, jsonrpc::response(&raw(&Value::Null), &error));
            }
        };
        let known =
            session_id.as_deref().map(|id| lock(&self.sessions).by_id.get(id).map(|(_, s)| Arc::clone(s)));
        let session = match known {
            Some(Some(session)) => Some(session),
            Some(None) => return words(StatusCode::NOT_FOUND, "the session is not known"),
            None => None,
        };
        match message {
            Message::Request { id, method, params } => {
                if method == "initialize" && session.is_none() {
                    return self.begin(&id, params.as_deref()).await;
                }
                // A client of the modern era has no session: this request is all there is.
                let (out, rest) = mpsc::channel(OUT_MAX);
                let own = Arc::new(Session::new(out, SafeText::new("http")));
                let asker = session.map_or_else(|| Arc::clone(&own), |session| Arc::clone(&session.session));
                let Some(cancel) = asker.begin(&id) else {
                    let refused = Err(super::requests::too_many());
                    return json(StatusCode::OK, jsonrpc::response(&id, &refused));
                };
                let gateway = Arc::clone(&self.gateway);
                if !(streams && method == "tools/call") {
                    let result = gateway.answer(&asker, &method, params.as_deref(), cancel).await;
                    asker.end(&id);
                    return json(StatusCode::OK, jsonrpc::response(&id, &result));
                }
                // What is sent during the call goes into its own stream.
                let caller = Arc::new(asker.for_request(own.sender()));
                let given_up = cancel.clone();
                tokio::spawn(async move {
                    let result = gateway.answer(&caller, &method, params.as_deref(), cancel.clone()).await;
                    asker.end(&id);
                    caller.send(jsonrpc::response(&id, &result)).await;
                });
                events(rest, Some(given_up))
            }
            Message::Notification { method, params } => {
                if let Some(session) = session {
                    let message = Message::Notification { method, params };
                    self.gateway.receive(&session.session, message).await;
                }
                words(StatusCode::ACCEPTED, "")
            }
            Message::Response { id, result } => {
                if let Some(session) = session {
                    session.session.answered(&id, result);
                }
                words(StatusCode::ACCEPTED, "")
            }
        }
    }

    /// A client of the old era says hello: it gets a session.
    async fn begin(
        &self,
        id: &serde_json::value::RawValue,
        params: Option<&serde_json::value::RawValue>,
    ) -> Answer {
        let random = self.gateway.toolbox().project.process.random;
        let name = format!("{:016x}{:016x}", random(), random());
        let (out, rest) = mpsc::channel(OUT_MAX);
        let session = Arc::new(Session::new(out, SafeText::new(format!("mcp-{}", &name[..8]))));
        self.gateway.add_session(&session);
        let result = self.gateway.answer(&session, "initialize", params, Cancel::new()).await;
        let kept = Arc::new(HttpSession { session, rest: Mutex::new(Some(rest)) });
        {
            let mut sessions = lock(&self.sessions);
            sessions.next += 1;
            let number = sessions.next;
            if sessions.by_id.len() >= SESSIONS_MAX
                && let Some(oldest) =
                    sessions.by_id.iter().min_by_key(|(_, (number, _))| *number).map(|(id, _)| id.clone())
            {
                sessions.by_id.remove(&oldest);
            }
            sessions.by_id.insert(name.clone(), (number, kept));
        }
        let mut answer = json(StatusCode::OK, jsonrpc::response(id, &result));
        if let Ok(name) = HeaderValue::from_str(&name) {
            answer.headers_mut().insert(SESSION, name);
        }
        answer
    }

    /// The stream of a session: what the gateway says by itself.
    fn stream(&self, session_id: Option<&str>) -> Answer {
        let session =
            session_id.and_then(|id| lock(&self.sessions).by_id.get(id).map(|(_, s)| Arc::clone(s)));
        let Some(session) = session else {
            return words(StatusCode::METHOD_NOT_ALLOWED, "there is no stream without a session");
        };
        let rest = lock(&session.rest).take();
        match rest {
            Some(rest) => events(rest, None),
            None => words(StatusCode::CONFLICT, "the session has a stream already"),
        }
    }

    fn goodbye(&self, session_id: Option<&str>) -> Answer {
        let gone = session_id.and_then(|id| lock(&self.sessions).by_id.remove(id));
        match gone {
            Some((_, session)) => {
                session.session.cancel_all();
                words(StatusCode::OK, "")
            }
            None => words(StatusCode::NOT_FOUND, "the session is not known"),
        }
    }
}

/// Whether a host is this machine: `localhost`, `127.0.0.1:8080`, `[::1]`.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
}

async fn read(body: Incoming) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(frame) = frame else { return Err((StatusCode::BAD_REQUEST, "the request was cut off")) };
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > MESSAGE_BYTES_MAX {
                return Err((StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

/// The body of a response: all at once, or a stream of events.
enum OutBody {
    Whole(Option<Bytes>),
    Events { messages: mpsc::Receiver<Vec<u8>>, given_up: Option<Cancel> },
}

impl Drop for OutBody {
    fn drop(&mut self) {
        // A client that is gone does not want the result of its call.
        if let Self::Events { given_up: Some(cancel), messages } = self
            && !messages.is_closed()
        {
            cancel.cancel();
        }
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events { messages, .. } => messages.poll_recv(cx).map(|message| {
                let message = message?;
                let mut event = b"event: message\ndata: ".to_vec();
                event.extend_from_slice(&message);
                event.extend_from_slice(b"\n\n");
                Some(Ok(Frame::data(Bytes::from(event))))
            }),
        }
    }
}

fn events(messages: mpsc::Receiver<Vec<u8>>, given_up: Option<Cancel>) -> Answer {
    let mut answer = Response::new(OutBody::Events { messages, given_up });
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    answer
}

fn whole(status: StatusCode, bytes: Vec<u8>, kind: &'static str) -> Answer {
    let mut answer = Response::new(OutBody::Whole(Some(Bytes::from(bytes))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn json(status: StatusCode, bytes: Vec<u8>) -> Answer {
    whole(status, bytes, "application/json")
}

fn words(status: StatusCode, text: &str) -> Answer {
    whole(status, text.as_bytes().to_vec(), "text/plain; charset=utf-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for host in
            ["localhost", "localhost:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:80", "127.9.9.9:1"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "10.0.0.1",
            "evil:localhost",
        ] {
            assert!(!is_local(host), "{host}");
        }
        assert!(is_same(b"abc", b"abc") && !is_same(b"abc", b"abd") && !is_same(b"", b"a"));
    }
}
