//! One live connection to a server: requests with time limits, progress and cancellation.

use crate::jsonrpc::{self, METHOD_NOT_FOUND, Members, Raw, RpcError};
use crate::protocol::{Era, META_PREFIX, modern_meta};
use crate::transport::{CallEvent, Inbox, Outgoing, Transport, TransportFailure};
use backstop_engine::Cancel;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How many notes of a call that was cut off are kept.
const NOTES_MAX: usize = 20;
/// How many characters of each.
const NOTE_CHARS_MAX: usize = 300;
/// How many pages of a list are asked for.
const PAGES_MAX: usize = 100;
/// The largest list of one server that is taken, in bytes.
const LIST_BYTES_MAX: usize = 8 << 20;
/// No further page is asked for after so many items.
const ITEMS_MAX: usize = 2000;
/// How long a server has to answer a ping after a call has timed out.
const PING: Duration = Duration::from_secs(2);

/// How long a call goes on at least after the server has asked something.
const WHILE_ASKED: Duration = Duration::from_secs(1);

/// Who is told what happens during a call.
pub(crate) trait ProgressSink: Send + Sync {
    /// Passes the parameters of a progress notification on.
    fn progress<'a>(&'a self, params: &'a RawValue) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
    /// Passes the parameters of a log message on.
    fn log<'a>(&'a self, params: &'a RawValue) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
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

/// What becomes known of a call before its answer.
pub(crate) struct CallWatch<'c> {
    pub(crate) partial: &'c mut Partial,
    /// Who is told of it at once.
    pub(crate) sink: Option<&'c dyn ProgressSink>,
    /// The id under which the server gets the call.
    pub(crate) sent_as: &'c AtomicU64,
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
    /// The answer is larger than what is taken, in bytes.
    TooLarge { what: String, max: usize },
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

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<&RawValue>,
        limits: RequestLimits,
        cancel: &Cancel,
    ) -> Result<Raw, RequestFailure> {
        request(self, method, params, limits, cancel).await
    }

    /// Makes a call: sends a request whose progress is asked for, and waits for its answer.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &Params<'_>,
        limits: RequestLimits,
        cancel: &Cancel,
        call: CallWatch<'_>,
    ) -> Result<Raw, RequestFailure> {
        exchange(self, method, Some(params), limits, cancel, Kind::Call(call)).await
    }

    /// Whether the server says that one of its lists may change.
    pub(crate) fn has_changing_lists(&self) -> bool {
        let all = self.hello.get("capabilities").and_then(Value::as_object);
        all.is_some_and(|all| all.values().any(|one| one.get("listChanged") == Some(&Value::Bool(true))))
    }

    /// Asks a server of the modern era to tell changes of its lists, until it does so no more.
    /// Returns whether it may be asked again.
    pub(crate) async fn listen(&self) -> bool {
        let wanted = json!({ "notifications": {
            "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true,
        } });
        let params = jsonrpc::raw(&wanted);
        let kind = Kind::Behind;
        let limits = RequestLimits::default();
        let params = Params::of(&params);
        let method = "subscriptions/listen";
        match exchange(self, method, Some(&params), limits, &Cancel::new(), kind).await {
            // It says that it has ended.
            Ok(_) => true,
            // A stream that broke off, while the server may still be there.
            Err(RequestFailure::Transport(_)) => !self.is_closed(),
            Err(_) => false,
        }
    }

    /// All pages of a list, or as many of its items as are taken of one server.
    pub(crate) async fn list(
        &self,
        method: &str,
        key: &str,
        limits: RequestLimits,
        cancel: &Cancel,
    ) -> Result<Vec<Value>, RequestFailure> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES_MAX {
            let params = cursor.as_ref().map(|cursor| jsonrpc::raw(&json!({ "cursor": cursor })));
            let mut page = match self.request(method, params.as_deref(), limits, cancel).await {
                Ok(page) => {
                    bytes += page.get().len();
                    if bytes > LIST_BYTES_MAX {
                        return Err(RequestFailure::TooLarge {
                            what: method.to_owned(),
                            max: LIST_BYTES_MAX,
                        });
                    }
                    jsonrpc::value(&page)
                }
                // A server that has only other things may not know the question.
                Err(RequestFailure::Rpc(error)) if error.code == METHOD_NOT_FOUND => break,
                Err(failure) => return Err(failure),
            };
            if let Some(Value::Array(found)) = page.get_mut(key).map(Value::take) {
                items.extend(found);
            }
            cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
            if cursor.is_none() || items.len() > ITEMS_MAX {
                break;
            }
        }
        Ok(items)
    }

    /// Whether the server still answers.
    pub(crate) async fn answers_ping(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        let limits = RequestLimits { idle: None, total: Some(PING) };
        let method = if self.era == Era::Modern { "server/discover" } else { "ping" };
        let answer = request(self, method, None, limits, &Cancel::new()).await;
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

/// The parameters of a request: what the server gets, and `_meta`, to which the era and the
/// progress add theirs.
#[derive(Debug, Default)]
pub(crate) struct Params<'p> {
    /// The members as JSON text. Nothing, where `whole` is passed on as it is.
    pub(crate) members: Vec<(Cow<'p, str>, &'p RawValue)>,
    pub(crate) meta: Map<String, Value>,
    /// Parameters that are no object.
    whole: Option<&'p RawValue>,
    /// The tool, prompt or resource that the request is about.
    about: Option<String>,
}

impl<'p> Params<'p> {
    /// The parameters of a tool's call.
    pub(crate) fn of_tool(tool: &str, members: Vec<(Cow<'p, str>, &'p RawValue)>) -> Self {
        Self { members, about: Some(tool.to_owned()), ..Self::default() }
    }

    /// Any parameters.
    pub(crate) fn of(params: &'p RawValue) -> Self {
        let Ok(members) = serde_json::from_str::<Members<'p>>(params.get()) else {
            return Self { whole: Some(params), ..Self::default() };
        };
        let mut this = Self::default();
        for (name, value) in members.0 {
            match name.as_ref() {
                "_meta" => this.meta = serde_json::from_str(value.get()).unwrap_or_default(),
                "name" | "uri" if this.about.is_none() => {
                    this.about = serde_json::from_str(value.get()).ok();
                    this.members.push((name, value));
                }
                _ => this.members.push((name, value)),
            }
        }
        this
    }

    /// The text that is sent, with what the era and the progress need. Nothing, where there is
    /// nothing to send.
    fn text(&self, modern: Option<&Value>, token: Option<u64>) -> Option<String> {
        if let Some(whole) = self.whole {
            return Some(whole.get().to_owned());
        }
        let mut meta = Cow::Borrowed(&self.meta);
        match modern {
            Some(capabilities) => {
                if let Value::Object(ours) = modern_meta(capabilities) {
                    for (key, value) in ours {
                        // A client of the same era has said who it is.
                        meta.to_mut().entry(key).or_insert(value);
                    }
                }
            }
            None if meta.keys().any(|key| key.starts_with(META_PREFIX)) => {
                meta.to_mut().retain(|key, _| !key.starts_with(META_PREFIX));
            }
            None => {}
        }
        if meta.contains_key("progressToken") {
            meta.to_mut().remove("progressToken");
        }
        let mut text =
            String::with_capacity(128 + self.members.iter().map(|(_, v)| v.get().len()).sum::<usize>());
        text.push('{');
        for (name, value) in &self.members {
            separate(&mut text);
            text.push_str(&jsonrpc::quoted(name));
            text.push(':');
            text.push_str(value.get());
        }
        if !meta.is_empty() || token.is_some() {
            separate(&mut text);
            text.push_str("\"_meta\":{");
            for (name, value) in meta.iter() {
                separate(&mut text);
                text.push_str(&jsonrpc::quoted(name));
                text.push(':');
                text.push_str(&value.to_string());
            }
            if let Some(token) = token {
                separate(&mut text);
                text.push_str("\"progressToken\":");
                text.push_str(&token.to_string());
            }
            text.push('}');
        }
        text.push('}');
        Some(text)
    }
}

fn separate(text: &mut String) {
    if !text.ends_with('{') {
        text.push(',');
    }
}

/// Sends a request and waits for its answer.
pub(crate) async fn request<L: Link + ?Sized>(
    link: &L,
    method: &str,
    params: Option<&RawValue>,
    limits: RequestLimits,
    cancel: &Cancel,
) -> Result<Raw, RequestFailure> {
    // What the era adds needs an object to be added to.
    let params = params.map(Params::of).or_else(|| link.modern().map(|_| Params::default()));
    exchange(link, method, params.as_ref(), limits, cancel, Kind::Question).await
}

/// What a request is sent for.
enum Kind<'c> {
    /// A call, whose progress is asked for.
    Call(CallWatch<'c>),
    /// Anything else that somebody waits for.
    Question,
    /// What is waited for behind everybody's back.
    Behind,
}

async fn exchange<L: Link + ?Sized>(
    link: &L,
    method: &str,
    params: Option<&Params<'_>>,
    limits: RequestLimits,
    cancel: &Cancel,
    kind: Kind<'_>,
) -> Result<Raw, RequestFailure> {
    let began = Instant::now();
    let mut waiting = link.inbox().wait();
    let mut call = match kind {
        Kind::Call(call) => Some(call),
        Kind::Question => None,
        Kind::Behind => {
            waiting.stays_behind();
            None
        }
    };
    if let Some(kind) = link.inbox().closed() {
        let failure = TransportFailure::new(backstop_core::Dispatch::NotDispatched, kind);
        return Err(RequestFailure::Transport(failure));
    }
    let (id, sent) = (waiting.id, Arc::clone(&waiting.sent));
    if let Some(call) = &call {
        call.sent_as.store(id, Ordering::Release);
    }
    let text = params.and_then(|params| params.text(link.modern(), call.is_some().then_some(id)));
    let message = Outgoing {
        bytes: jsonrpc::request(&id.to_string(), method, text.as_deref()),
        id: Some(id),
        method: method.to_owned(),
        about: params.and_then(|params| params.about.clone()),
    };
    let mut last = began;
    let mut total_end = limits.total.and_then(|total| began.checked_add(total));
    let failure = {
        let mut sending = std::pin::pin!(link.transport().send(message));
        let mut is_sent = false;
        let mut cancelled = std::pin::pin!(cancel.cancelled());
        let mut timer = std::pin::pin!(tokio::time::sleep_until(began));
        let mut timer_end = began;
        loop {
            let idle_end = limits.idle.and_then(|idle| last.checked_add(idle));
            let end = earlier(total_end, idle_end);
            if let Some(end) = end.filter(|end| *end != timer_end) {
                timer.as_mut().reset(end);
                timer_end = end;
            }
            let event = tokio::select! {
                biased;
                event = waiting.events.recv() => event,
                () = &mut cancelled => break RequestFailure::Cancelled { sent: sent.load(Ordering::Acquire) },
                () = &mut timer, if end.is_some() => {
                    if link.inbox().is_asking() {
                        // The server waits for an answer of ours: a person may be typing it.
                        last = Instant::now();
                        total_end = total_end.map(|end| end.max(last + WHILE_ASKED));
                        tokio::time::sleep(WHILE_ASKED / 10).await;
                        continue;
                    }
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
                Some(CallEvent::Answer(result)) => {
                    return result.map_err(|error| RequestFailure::Rpc(*error));
                }
                Some(CallEvent::Failed(failure)) => return Err(RequestFailure::Transport(*failure)),
                Some(CallEvent::Progress(params)) => {
                    last = Instant::now();
                    if let Some(CallWatch { partial, sink, .. }) = &mut call {
                        partial.progressed(&params);
                        if let Some(sink) = sink {
                            let until =
                                earlier(total_end, limits.idle.and_then(|idle| last.checked_add(idle)));
                            tokio::select! {
                                () = bounded(sink.progress(&params), until) => {}
                                () = &mut cancelled => {
                                    break RequestFailure::Cancelled { sent: sent.load(Ordering::Acquire) };
                                }
                            }
                        }
                    }
                }
                Some(CallEvent::Log(params)) => {
                    if let Some(CallWatch { partial, sink, .. }) = &mut call {
                        partial.logged(&params);
                        if let Some(sink) = sink {
                            let until = earlier(total_end, idle_end);
                            tokio::select! {
                                () = bounded(sink.log(&params), until) => {}
                                () = &mut cancelled => {
                                    break RequestFailure::Cancelled { sent: sent.load(Ordering::Acquire) };
                                }
                            }
                        }
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
        Box::pin(tell_cancelled(link.transport(), id)).await;
    }
    Err(failure)
}

/// The earlier of two times.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Waits for this, but not longer than until then: a client that does not read gets less, and the
/// call that it belongs to ends in time all the same.
async fn bounded(what: impl Future<Output = ()>, until: Option<Instant>) {
    match until {
        Some(until) => {
            let _ = tokio::time::timeout_at(until, what).await;
        }
        None => what.await,
    }
}

/// Tells a server that nobody waits for its answer any more.
async fn tell_cancelled(transport: &Transport, id: u64) {
    let params = jsonrpc::raw(&json!({ "requestId": id, "reason": "no longer waited for" }));
    let bytes = jsonrpc::notification("notifications/cancelled", Some(&params));
    let method = "notifications/cancelled".to_owned();
    let message = Outgoing { bytes, id: None, method, about: None };
    // A server that reads nothing must not hold up whoever gave up on it.
    let _ = tokio::time::timeout(Duration::from_millis(100), transport.send(message)).await;
}

/// The `_meta` of a request's parameters.
pub(crate) fn meta_of(params: &RawValue) -> Map<String, Value> {
    #[derive(serde::Deserialize)]
    struct Meta {
        #[serde(rename = "_meta", default)]
        meta: Option<Map<String, Value>>,
    }
    let text = params.get();
    // Most requests have none. A name may be written with escapes.
    if !text.contains("_meta") && !text.contains('\\') {
        return Map::new();
    }
    serde_json::from_str::<Meta>(text).ok().and_then(|found| found.meta).unwrap_or_default()
}
