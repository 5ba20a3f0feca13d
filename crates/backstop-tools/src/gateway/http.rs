//! The gateway over streamable HTTP, on one path.
//!
//! A client of the old era has a session, by the header that it gets with the answer to
//! `initialize`; one of the modern era has none. A call is answered as a stream of events, so that
//! progress and questions come before its result, and so are changes that a client listens for;
//! everything else as JSON.
//!
//! Requests from web pages are refused: the host and the origin have to be this machine. Beyond
//! loopback a token is asked for.

use super::session::OUT_MAX;
use super::{Gateway, Session, lock};
use crate::jsonrpc::{self, MESSAGE_BYTES_MAX, Message, PARSE_ERROR, RpcError, raw};
use backstop_core::SafeText;
use backstop_engine::Cancel;
use backstop_http::server::{Access, Answer, ServerLimits, ServerRequest, serve};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

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
    /// What is sent to the client beside answers; its stream holds it.
    rest: tokio::sync::Mutex<mpsc::Receiver<Vec<u8>>>,
    /// The number of its newest stream: an older one ends, since its client has come again.
    newest: watch::Sender<u64>,
}

struct Server {
    gateway: Arc<Gateway>,
    sessions: Mutex<Sessions>,
}

impl Gateway {
    /// Serves clients over HTTP until `cancel` fires, then ends all servers.
    pub async fn serve_http(
        self: &Arc<Self>,
        listener: std::net::TcpListener,
        access: HttpAccess,
        cancel: &Cancel,
    ) -> std::io::Result<()> {
        let server = Arc::new(Server { gateway: Arc::clone(self), sessions: Mutex::default() });
        let looking = tokio::spawn(Arc::clone(self).look_after(cancel.clone()));
        // Calls under way are cancelled below, so that there is nothing to wait for.
        let limits = ServerLimits { connections_max: CONNECTIONS_MAX, drain_max: Duration::ZERO };
        let access = Access::local().with_token(access.token);
        let handler = {
            let server = Arc::clone(&server);
            move |request| {
                let server = Arc::clone(&server);
                async move { server.answer(request).await }
            }
        };
        let served = serve(listener, access, limits, cancel.cancelled(), handler).await;
        looking.abort();
        for (_, session) in lock(&server.sessions).by_id.values() {
            session.session.cancel_all();
        }
        self.toolbox().close().await;
        served
    }
}

impl Server {
    async fn answer(&self, request: ServerRequest) -> Answer {
        if request.path() != PATH {
            return Answer::text(404, &format!("the gateway is at {PATH}"));
        }
        let session_id = request.headers().text(SESSION).map(str::to_owned);
        match request.method().as_str() {
            "POST" => self.post(request, session_id).await,
            "GET" => self.stream(session_id.as_deref()),
            "DELETE" => self.goodbye(session_id.as_deref()),
            _ => Answer::text(405, "use POST, GET or DELETE"),
        }
    }

    async fn post(&self, mut request: ServerRequest, session_id: Option<String>) -> Answer {
        let streams =
            request.headers().text("accept").is_some_and(|accept| accept.contains("text/event-stream"));
        let body = match request.bytes(MESSAGE_BYTES_MAX).await {
            Ok(body) => body,
            Err(problem) => return Answer::text(problem.status(), &problem.to_string()),
        };
        let message = match Message::parse(&body) {
            Ok(message) => message,
            Err(bad) => {
                let error = Err(RpcError::new(PARSE_ERROR, bad.to_string()));
                return Answer::json(400, jsonrpc::response(&raw(&Value::Null), &error));
            }
        };
        let known =
            session_id.as_deref().map(|id| lock(&self.sessions).by_id.get(id).map(|(_, s)| Arc::clone(s)));
        let session = match known {
            Some(Some(session)) => Some(session),
            Some(None) => return Answer::text(404, "the session is not known"),
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
                    return Answer::json(200, jsonrpc::response(&id, &refused));
                };
                let gateway = Arc::clone(&self.gateway);
                let listens = method == "subscriptions/listen";
                if listens && !streams {
                    asker.end(&id);
                    return Answer::text(406, "what is listened to is a stream: accept text/event-stream");
                }
                if !(listens || streams && method == "tools/call") {
                    let result = gateway.answer(&asker, (&id, &method), params.as_deref(), cancel).await;
                    asker.end(&id);
                    return Answer::json(200, jsonrpc::response(&id, &result));
                }
                // What is sent during the call goes into its own stream.
                let caller = Arc::new(asker.for_request(own.sender()));
                let given_up = cancel.clone();
                tokio::spawn(async move {
                    let result =
                        gateway.answer(&caller, (&id, &method), params.as_deref(), cancel.clone()).await;
                    asker.end(&id);
                    caller.send(jsonrpc::response(&id, &result)).await;
                });
                events(rest, Some(given_up))
            }
            Message::Notification { method, params } => {
                if let Some(session) = session {
                    self.gateway.noticed(&session.session, &method, params.as_deref());
                }
                Answer::text(202, "")
            }
            Message::Response { id, result } => {
                if let Some(session) = session {
                    session.session.answered(&id, result);
                }
                Answer::text(202, "")
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
        let result = self.gateway.answer(&session, (id, "initialize"), params, Cancel::new()).await;
        if result.is_err() {
            return Answer::json(200, jsonrpc::response(id, &result));
        }
        let kept = Arc::new(HttpSession {
            session,
            rest: tokio::sync::Mutex::new(rest),
            newest: watch::Sender::new(0),
        });
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
        Answer::json(200, jsonrpc::response(id, &result)).header(SESSION, &name)
    }

    /// The stream of a session: what the gateway says by itself.
    fn stream(&self, session_id: Option<&str>) -> Answer {
        let session =
            session_id.and_then(|id| lock(&self.sessions).by_id.get(id).map(|(_, s)| Arc::clone(s)));
        let Some(session) = session else {
            return Answer::text(405, "there is no stream without a session");
        };
        session.newest.send_modify(|number| *number += 1);
        let number = *session.newest.borrow();
        let mut newest = session.newest.subscribe();
        stream_answer().written(async move |writer| {
            let is_old = newest.wait_for(|newest| *newest != number);
            let all = async {
                let mut rest = session.rest.lock().await;
                while let Some(message) = rest.recv().await {
                    writer.write(event(&message)).await?;
                }
                Ok(())
            };
            tokio::select! {
                done = all => done,
                _ = is_old => Ok(()),
            }
        })
    }

    fn goodbye(&self, session_id: Option<&str>) -> Answer {
        let gone = session_id.and_then(|id| lock(&self.sessions).by_id.remove(id));
        match gone {
            Some((_, session)) => {
                session.session.cancel_all();
                Answer::text(200, "")
            }
            None => Answer::text(404, "the session is not known"),
        }
    }
}

/// A stream of messages as they come. Where a client hangs up before the end, its call is given up.
fn events(mut messages: mpsc::Receiver<Vec<u8>>, given_up: Option<Cancel>) -> Answer {
    let mut unread = Unread(given_up);
    stream_answer().written(async move |writer| {
        while let Some(message) = messages.recv().await {
            writer.write(event(&message)).await?;
        }
        unread.finish();
        Ok(())
    })
}

fn stream_answer() -> Answer {
    Answer::new(200).header("content-type", "text/event-stream").header("cache-control", "no-store")
}

fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

/// A client that is gone does not want the result of its call.
struct Unread(Option<Cancel>);

impl Unread {
    /// It was read to its end.
    fn finish(&mut self) {
        self.0 = None;
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}
