//! A server that is reached over streamable HTTP: each message is a POST; the answer is JSON or a
//! stream of events. What a server of the old era says or asks by itself comes in a stream of its
//! own, a GET.

use super::sse::Events;
use super::{Inbox, Outgoing, TransportFailure, TransportFailureKind, repeat_stream};
use crate::jsonrpc::MESSAGE_BYTES_MAX;
use crate::protocol::Era;
use backstop_core::Dispatch;
use backstop_http::{Address, Client, HttpError, Limits, Method, Request, Response};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of the body of a failure is read, in bytes.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server may be silent within one response. The limits of a call are shorter.
const SILENT: Duration = Duration::from_secs(3600);
/// How long the end of a response is waited for once its answer has come.
const END_OF_RESPONSE: Duration = Duration::from_millis(100);
/// How long the end of a session is waited for.
const GOODBYE: Duration = Duration::from_secs(2);

/// A server over HTTP.
#[derive(Clone)]
pub(crate) struct HttpTarget {
    pub(crate) address: Address,
    /// The headers of every request: name and value.
    pub(crate) headers: Vec<(String, String)>,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTarget").field("place", &self.address.place()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Session {
    id: Option<String>,
    version_text: Option<String>,
    era: Option<Era>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    target: HttpTarget,
    session: Mutex<Session>,
    inbox: Arc<Inbox>,
}

/// A session with a server over HTTP.
#[derive(Debug)]
pub(crate) struct Http(Arc<Shared>);

impl Http {
    pub(crate) fn new(client: Client, target: HttpTarget, inbox: &Arc<Inbox>) -> Self {
        Self(Arc::new(Shared { client, target, session: Mutex::default(), inbox: Arc::clone(inbox) }))
    }

    /// Sets what every further request says: the version that was agreed on.
    pub(crate) fn agreed(&self, era: Era, version: &str) {
        let mut session = self.0.session();
        session.era = Some(era);
        session.version_text = Some(version.to_owned());
    }

    /// Begins to listen to what the server says by itself, for as long as the connection is open.
    pub(crate) fn listen(&self) {
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            let inbox = Arc::clone(&shared.inbox);
            tokio::select! {
                () = shared.listen() => {}
                () = inbox.until_closed() => {}
            }
        });
    }

    pub(super) fn send(&self, message: Outgoing) {
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move { shared.exchange(message).await });
    }

    /// Tells the server that the session is over, where there is one.
    pub(super) async fn stop(&self) {
        let id = self.0.session().id.take();
        if let Some(id) = id
            && let Ok(request) = self.0.request(Method::DELETE, Some(&id), None)
        {
            let _ = tokio::time::timeout(GOODBYE, self.0.client.send(request)).await;
        }
        self.0.inbox.close(TransportFailureKind::Closed);
    }
}

impl Shared {
    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        message: Option<&Outgoing>,
    ) -> Result<Request, backstop_http::HeaderError> {
        let limits = Limits { connect: CONNECT, idle: SILENT, total: None };
        let mut request = Request::new(method, &self.target.address)
            .limits(limits)
            .header("accept", "application/json, text/event-stream")?;
        for (name, value) in &self.target.headers {
            request = request.secret_header(name, value)?;
        }
        if let Some(session) = session {
            request = request.secret_header("mcp-session-id", session)?;
        }
        let (version, era) = {
            let session = self.session();
            (session.version_text.clone(), session.era)
        };
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version)?;
        }
        if let (Some(message), Some(Era::Modern)) = (message, era) {
            request = request.header("mcp-method", &message.method)?;
            if let Some(about) = &message.about {
                request = request.header("mcp-name", about)?;
            }
        }
        Ok(request)
    }

    /// Reads the server's own stream, again and again. Ends where the server has none.
    async fn listen(&self) {
        repeat_stream(|| self.listen_once()).await;
    }

    /// Reads the server's own stream until it ends. Returns whether it may be asked for again.
    async fn listen_once(&self) -> bool {
        let session = self.session().id.clone();
        let Ok(request) = self.request(Method::GET, session.as_deref(), None) else { return false };
        // One that cannot be reached now may be back later.
        let Ok(mut response) = self.client.send(request).await else { return true };
        if !response.is_success() || !is_stream(&response) {
            return response.status() >= 500;
        }
        let _ = self.read_events(&mut response, None).await;
        true
    }

    /// Sends one message, and passes on what is answered.
    async fn exchange(self: Arc<Self>, message: Outgoing) {
        let id = message.id;
        if id.is_some_and(|id| !self.inbox.begins_to_send(id)) {
            return;
        }
        let answered = tokio::select! {
            answered = self.post(message) => answered,
            // Nobody waits any more: the request is broken off, which a server of the modern era
            // takes for a cancellation.
            () = self.given_up(id) => return,
        };
        if let (Err(failure), Some(id)) = (answered, id) {
            self.inbox.fail(id, failure);
        }
    }

    /// Waits until nobody wants the answer, and a little longer: one that has come was followed by
    /// the end of its response, after which the connection can be used again.
    async fn given_up(&self, id: Option<u64>) {
        let Some(id) = id else { return std::future::pending().await };
        self.inbox.until_unwanted(id).await;
        tokio::time::sleep(END_OF_RESPONSE).await;
    }

    async fn post(&self, message: Outgoing) -> Result<(), TransportFailure> {
        let not_sent =
            |text: String| TransportFailure::new(Dispatch::NotDispatched, TransportFailureKind::Write(text));
        let session = self.session().id.clone();
        let request = self.request(Method::POST, session.as_deref(), Some(&message));
        let request = request.and_then(|request| request.header("content-type", "application/json"));
        let request = request.map_err(|error| not_sent(error.to_string()))?.body(message.bytes);
        let mut response = self.client.send(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        if let Some(given) = response.headers().text("mcp-session-id") {
            self.session().id = Some(given.to_owned());
        }
        if status == 404 && session.is_some() {
            self.session().id = None;
            return Err(TransportFailure::new(Dispatch::NotDispatched, TransportFailureKind::SessionExpired));
        }
        if !response.is_success() {
            let headers = response.headers().to_pairs();
            let body = response.body_start(ERROR_BYTES_MAX).await;
            // An error of JSON-RPC may come with a status of its own.
            if message.id.is_some() && is_rpc(&body) {
                self.inbox.receive(&body, message.id).await;
                return Ok(());
            }
            let kind = TransportFailureKind::Status { status, headers, body };
            return Err(TransportFailure::new(Dispatch::Answered, kind));
        }
        if message.id.is_none() || status == 202 {
            return match message.id {
                None => Ok(()),
                Some(_) => Err(no_answer("it accepted the request and did not answer it")),
            };
        }
        self.read(&mut response, message.id).await
    }

    /// Reads messages until the response ends.
    async fn read(&self, response: &mut Response, id: Option<u64>) -> Result<(), TransportFailure> {
        if !is_stream(response) {
            let body = response.bytes(MESSAGE_BYTES_MAX).await.map_err(|error| failed(&error))?;
            if !is_rpc(&body) {
                return Err(no_answer("its answer is not a JSON-RPC message"));
            }
            self.inbox.receive(&body, id).await;
            return Ok(());
        }
        self.read_events(response, id).await?;
        Err(no_answer("the stream ended without an answer"))
    }

    /// Reads a stream to its end; `within` is the request of ours that it answers.
    async fn read_events(
        &self,
        response: &mut Response,
        within: Option<u64>,
    ) -> Result<(), TransportFailure> {
        let mut events = Events::default();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            let mut complete = Vec::new();
            events.push(chunk.as_ref(), &mut |data| complete.push(data.to_vec()));
            for data in complete {
                self.inbox.receive(&data, within).await;
            }
        }
        Ok(())
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().text("content-type").unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/event-stream")
}

fn is_rpc(body: &[u8]) -> bool {
    crate::jsonrpc::Message::parse(body).is_ok()
}

fn no_answer(text: &str) -> TransportFailure {
    TransportFailure::new(Dispatch::Lost, TransportFailureKind::NoAnswer(text.to_owned()))
}

fn failed(error: &HttpError) -> TransportFailure {
    if error.is_body_too_large() {
        return TransportFailure::new(Dispatch::Answered, TransportFailureKind::TooLarge);
    }
    let kind = TransportFailureKind::Http {
        message: error.to_string(),
        errno: error.errno(),
        timed_out: error.timeout().is_some(),
    };
    TransportFailure::new(error.dispatch(), kind)
}
