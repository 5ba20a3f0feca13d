//! One live connection to a server: requests with time limits, progress and cancellation.

use crate::jsonrpc::{self, Raw, RpcError};
use crate::protocol::{Era, modern_meta};
use crate::transport::{CallEvent, Inbox, Outgoing, Transport, TransportFailure};
use backstop_engine::Cancel;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How many notes of a call that was cut off are kept.
const NOTES_MAX: usize = 20;
/// How many characters of each.
const NOTE_CHARS_MAX: usize = 300;
/// How long a server has to answer a ping after a call has timed out.
const PING: Duration = Duration::from_secs(2);

/// How long a call goes on at least after the server has asked something.
const WHILE_ASKED: Duration = Duration::from_secs(1);

/// Who is told of a call's progress.
pub(crate) trait ProgressSink: Send + Sync {
    /// Passes the parameters of a progress notification on.
    fn progress<'a>(&'a self, params: &'a RawValue) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The time limits of one request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestLimits {
    /// Since it was sent, or since its last progress.
    pub(crate) idle: Option<Duration>,
    /// In all.
    pub(crate) total: Option<Duration>,
}

/// What arrived of a call before its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partial {
    /// Progress and log messages, newest last.
    pub(crate) notes: Vec<String>,
    /// How many progress notifications there were.
    pub(crate) progress: u64,
}

impl Partial {
    fn note(&mut self, text: &str) {
        if self.notes.len() == NOTES_MAX {
            self.notes.remove(0);
        }
        self.notes.push(text.chars().take(NOTE_CHARS_MAX).collect());
    }

    /// What arrived, in a few words. Nothing, where nothing did.
    pub(crate) fn summary(&self) -> Option<String> {
        (!self.notes.is_empty()).then(|| self.notes.join("\n"))
    }

    fn progressed(&mut self, params: &RawValue) {
        self.progress += 1;
        let params = jsonrpc::value(params);
        let of = params.get("total").map(|total| format!("/{total}")).unwrap_or_default();
        let message = params.get("message").and_then(Value::as_str).map(|text| format!(" {text}"));
        let at = params.get("progress").cloned().unwrap_or(Value::Null);
        self.note(&format!("progress {at}{of}{}", message.unwrap_or_default()));
    }

    fn logged(&mut self, params: &RawValue) {
        let params = jsonrpc::value(params);
        let data = params.get("data").cloned().unwrap_or(Value::Null);
        self.note(&data.as_str().map_or_else(|| data.to_string(), str::to_owned));
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The connection failed.
    Transport(TransportFailure),
    /// A time limit of ours ended it.
    TimedOut { after: Duration, limit: Duration, since_progress: bool, sent: bool },
    /// Somebody asked for its end.
    Cancelled { sent: bool },
}

/// A connection on which the handshake is done.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) era: Era,
    /// What the server said when it was greeted.
    pub(crate) hello: Value,
    /// What we told it that its client can do.
    pub(crate) capabilities: Value,
}

impl Connection {
    /// Whether nothing can be asked any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.inbox.closed().is_some()
    }

    /// Whether the server says that it has this: `tools`, `resources`, `prompts`, `logging`.
    pub(crate) fn has(&self, capability: &str) -> bool {
        self.hello.get("capabilities").is_some_and(|all| all.get(capability).is_some())
    }

    /// Sends a request and waits for its answer. Progress is asked for where `partial` is given.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<&RawValue>,
        limits: RequestLimits,
        cancel: &Cancel,
        call: Option<(&mut Partial, Option<&dyn ProgressSink>)>,
    ) -> Result<Raw, RequestFailure> {
        request(self, method, params, limits, cancel, call).await
    }

    /// Whether the server still answers.
    pub(crate) async fn answers_ping(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        let limits = RequestLimits { idle: None, total: Some(PING) };
        let method = if self.era == Era::Modern { "server/discover" } else { "ping" };
        let answer = request(self, method, None, limits, &Cancel::new(), None).await;
        matches!(answer, Ok(_) | Err(RequestFailure::Rpc(_)))
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&self, id: &RawValue, result: &Result<Raw, RpcError>) {
        self.transport
            .send(Outgoing {
                bytes: jsonrpc::response(id, result),
                id: None,
                method: String::new(),
                about: None,
            })
            .await;
    }
}

/// What a request needs of a connection, before and after its handshake.
pub(crate) trait Link {
    fn transport(&self) -> &Transport;
    fn inbox(&self) -> &Arc<Inbox>;
    /// The era, where it is known, and what the client can do.
    fn modern(&self) -> Option<&Value>;
}

impl Link for Connection {
    fn transport(&self) -> &Transport {
        &self.transport
    }
    fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }
    fn modern(&self) -> Option<&Value> {
        (self.era == Era::Modern).then_some(&self.capabilities)
    }
}

/// Sends a request and waits for its answer.
pub(crate) async fn request<L: Link + ?Sized>(
    link: &L,
    method: &str,
    params: Option<&RawValue>,
    limits: RequestLimits,
    cancel: &Cancel,
    mut call: Option<(&mut Partial, Option<&dyn ProgressSink>)>,
) -> Result<Raw, RequestFailure> {
    let began = Instant::now();
    let mut waiting = link.inbox().wait();
    if let Some(kind) = link.inbox().closed() {
        let failure = TransportFailure::new(backstop_core::Dispatch::NotDispatched, kind);
        return Err(RequestFailure::Transport(failure));
    }
    let (id, sent) = (waiting.id, Arc::clone(&waiting.sent));
    let params = with_meta(params, link.modern(), call.is_some().then_some(id));
    let message = Outgoing {
        bytes: jsonrpc::request(&id.to_string(), method, params.as_deref()),
        id: Some(id),
        method: method.to_owned(),
        about: params.as_deref().and_then(about),
    };
    let mut last = began;
    let mut total_end = limits.total.and_then(|total| began.checked_add(total));
    let failure = {
        let mut sending = std::pin::pin!(link.transport().send(message));
        let mut is_sent = false;
        loop {
            let idle_end = limits.idle.and_then(|idle| last.checked_add(idle));
            let end = [total_end, idle_end].into_iter().flatten().min();
            let event = tokio::select! {
                biased;
                event = waiting.events.recv() => event,
                () = cancel.cancelled() => break RequestFailure::Cancelled { sent: sent.load(Ordering::Acquire) },
                () = until(end), if link.inbox().is_asking() => {
                    // The server waits for an answer of ours: a person may be typing it.
                    last = Instant::now();
                    total_end = total_end.map(|end| end.max(last + WHILE_ASKED));
                    tokio::time::sleep(WHILE_ASKED / 10).await;
                    continue;
                }
                () = until(end), if !link.inbox().is_asking() => {
                    let since_progress = end == idle_end && end != total_end;
                    let limit = if since_progress { limits.idle } else { limits.total };
                    break RequestFailure::TimedOut {
                        after: began.elapsed(),
                        limit: limit.unwrap_or_default(),
                        since_progress,
                        sent: sent.load(Ordering::Acquire),
                    };
                }
                () = &mut sending, if !is_sent => { is_sent = true; continue }
            };
            match event {
                Some(CallEvent::Answer(result)) => return result.map_err(RequestFailure::Rpc),
                Some(CallEvent::Failed(failure)) => return Err(RequestFailure::Transport(failure)),
                Some(CallEvent::Progress(params)) => {
                    last = Instant::now();
                    if let Some((partial, sink)) = &mut call {
                        partial.progressed(&params);
                        if let Some(sink) = sink {
                            sink.progress(&params).await;
                        }
                    }
                }
                Some(CallEvent::Log(params)) => {
                    if let Some((partial, _)) = &mut call {
                        partial.logged(&params);
                    }
                }
                None => {
                    let kind =
                        link.inbox().closed().unwrap_or(crate::transport::TransportFailureKind::Closed);
                    let failure = TransportFailure::new(backstop_core::Dispatch::Lost, kind);
                    return Err(RequestFailure::Transport(failure));
                }
            }
        }
    };
    drop(waiting);
    if sent.load(Ordering::Acquire) && !matches!(method, "initialize" | "server/discover") {
        let params = jsonrpc::raw(&json!({ "requestId": id, "reason": "no longer waited for" }));
        let bytes = jsonrpc::notification("notifications/cancelled", Some(&params));
        let method = "notifications/cancelled".to_owned();
        let message = Outgoing { bytes, id: None, method, about: None };
        // A server that reads nothing must not hold up whoever gave up on it.
        let _ = tokio::time::timeout(Duration::from_millis(100), link.transport().send(message)).await;
    }
    Err(failure)
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// The parameters with what the era needs in `_meta`, and the token of the progress.
fn with_meta(params: Option<&RawValue>, modern: Option<&Value>, token: Option<u64>) -> Option<Raw> {
    if modern.is_none() && token.is_none() {
        return params.map(ToOwned::to_owned);
    }
    let empty = jsonrpc::raw(&json!({}));
    let params = params.unwrap_or(&empty);
    let mut meta = meta_of(params);
    if let Some(capabilities) = modern {
        if let Value::Object(ours) = modern_meta(capabilities) {
            for (key, value) in ours {
                // A client of the same era has said who it is.
                meta.entry(key).or_insert(value);
            }
        }
    } else {
        meta.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
    }
    match token {
        Some(token) => meta.insert("progressToken".to_owned(), token.into()),
        None => meta.remove("progressToken"),
    };
    Some(jsonrpc::with_member(params, "_meta", &Value::Object(meta)))
}

/// The `_meta` of a request's parameters.
pub(crate) fn meta_of(params: &RawValue) -> Map<String, Value> {
    #[derive(serde::Deserialize)]
    struct Meta {
        #[serde(rename = "_meta", default)]
        meta: Option<Map<String, Value>>,
    }
    serde_json::from_str::<Meta>(params.get()).ok().and_then(|found| found.meta).unwrap_or_default()
}

/// The tool, prompt or resource that a request is about.
fn about(params: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct About {
        name: Option<String>,
        uri: Option<String>,
    }
    let about: About = serde_json::from_str(params.get()).ok()?;
    about.name.or(about.uri)
}
