//! One client of the gateway.

use super::lock;
use crate::connection::ProgressSink;
use crate::jsonrpc::{self, Raw, RpcError, raw};
use crate::log_level::LogLevel;
use crate::protocol::Era;
use backstop_core::SafeText;
use backstop_engine::Cancel;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// How many messages may wait to be written.
pub(super) const OUT_MAX: usize = 64;
/// How many requests of a client are worked on at once.
const RUNNING_MAX: usize = 4096;
/// How long a client may take to answer a question.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    out: mpsc::Sender<Vec<u8>>,
    /// What it said of itself: its name, and what it can do.
    client: Mutex<(Option<SafeText>, Value)>,
    era: Mutex<Option<Era>>,
    /// The least important log messages that it wants, where it has said so.
    log_level: Mutex<Option<LogLevel>>,
    /// A name for the session in the journal.
    pub(super) id: SafeText,
    next_id: AtomicU64,
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
    /// The requests that are being worked on, by the text of their id.
    running: Mutex<HashMap<String, Cancel>>,
    /// The session that this one is a request of: questions are numbered and answered there.
    within: Option<Arc<Session>>,
    /// What was left out because the client does not read.
    left_out: Mutex<LeftOut>,
}

/// Messages that a client did not get because it does not read.
#[derive(Debug, Default)]
struct LeftOut {
    /// How many log messages.
    logs: u64,
    /// Changes of lists: one of each is told as soon as there is room.
    changes: BTreeSet<Vec<u8>>,
}

impl Session {
    pub(super) fn new(out: mpsc::Sender<Vec<u8>>, id: SafeText) -> Self {
        Self {
            out,
            client: Mutex::new((None, json!({}))),
            era: Mutex::default(),
            log_level: Mutex::default(),
            id,
            next_id: AtomicU64::new(1),
            questions: Mutex::default(),
            running: Mutex::default(),
            within: None,
            left_out: Mutex::default(),
        }
    }

    /// Where messages to the client go.
    pub(super) fn sender(&self) -> mpsc::Sender<Vec<u8>> {
        self.out.clone()
    }

    /// The same client, for one request: what is sent to it goes another way, and what it answers
    /// arrives here.
    pub(super) fn for_request(self: &Arc<Self>, out: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            out,
            client: Mutex::new(lock(&self.client).clone()),
            era: Mutex::new(*lock(&self.era)),
            log_level: Mutex::new(self.log_level()),
            id: self.id.clone(),
            next_id: AtomicU64::new(1),
            questions: Mutex::default(),
            running: Mutex::default(),
            within: Some(Arc::clone(self)),
            left_out: Mutex::default(),
        }
    }

    /// Sends a message to the client. One that is gone gets none.
    pub(super) async fn send(&self, bytes: Vec<u8>) {
        if self.out.send(bytes).await.is_ok() {
            self.tell_left_out();
        }
    }

    /// Sends a log message, where the client keeps up: one that does not read must not hold up
    /// others. How many were left out is told later.
    pub(super) fn notify(&self, bytes: Vec<u8>) {
        self.tell_left_out();
        if let Err(TrySendError::Full(_)) = self.out.try_send(bytes) {
            lock(&self.left_out).logs += 1;
        }
    }

    /// Says that a list changed, now or as soon as the client reads again.
    pub(super) fn notify_change(&self, bytes: Vec<u8>) {
        if let Err(TrySendError::Full(bytes)) = self.out.try_send(bytes) {
            lock(&self.left_out).changes.insert(bytes);
        }
    }

    fn tell_left_out(&self) {
        let mut left_out = lock(&self.left_out);
        while let Some(change) = left_out.changes.pop_first() {
            if let Err(TrySendError::Full(change)) = self.out.try_send(change) {
                left_out.changes.insert(change);
                return;
            }
        }
        if left_out.logs > 0 {
            let words = format!("{} log messages were left out: they were not read in time", left_out.logs);
            let params = raw(&json!({ "level": "warning", "logger": "backstop", "data": words }));
            let message = jsonrpc::notification("notifications/message", Some(&params));
            if self.out.try_send(message).is_ok() {
                left_out.logs = 0;
            }
        }
    }

    /// Notes who the client is.
    pub(super) fn introduce(&self, era: Era, info: Option<&Value>, capabilities: Option<&Value>) -> bool {
        let is_new = lock(&self.era).replace(era).is_none();
        let mut client = lock(&self.client);
        if let Some(name) = info.and_then(|info| info.get("name")).and_then(Value::as_str) {
            let version =
                info.and_then(|info| info.get("version")).and_then(Value::as_str).unwrap_or_default();
            client.0 = Some(SafeText::new(format!("{name} {version}").trim()));
        }
        if let Some(capabilities) = capabilities {
            client.1 = capabilities.clone();
        }
        is_new
    }

    /// The client's name.
    pub(super) fn caller(&self) -> Option<SafeText> {
        lock(&self.client).0.clone()
    }

    /// What the client can do that a server may ask for.
    pub(super) fn capabilities(&self) -> Value {
        let known = lock(&self.client).1.clone();
        let mut told = serde_json::Map::new();
        for key in ["roots", "sampling", "elicitation"] {
            if let Some(value) = known.get(key) {
                told.insert(key.to_owned(), value.clone());
            }
        }
        Value::Object(told)
    }

    /// Whether the client can be asked this.
    pub(super) fn can_answer(&self, method: &str) -> bool {
        let key = method.split('/').next().unwrap_or_default();
        lock(&self.client).1.get(key).is_some()
    }

    pub(super) fn era(&self) -> Era {
        lock(&self.era).unwrap_or(Era::Legacy)
    }

    /// The least important log messages that it wants, where it has said so.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
    }

    /// Begins to work on a request. It ends when the client cancels it. Nothing, where there are
    /// too many already.
    pub(super) fn begin(&self, id: &RawValue) -> Option<Cancel> {
        let cancel = Cancel::new();
        let mut running = lock(&self.running);
        if running.len() >= RUNNING_MAX {
            return None;
        }
        running.insert(id.get().to_owned(), cancel.clone());
        Some(cancel)
    }

    /// How many of its requests are worked on.
    pub(super) fn running(&self) -> usize {
        lock(&self.running).len()
    }

    /// The work on a request is over.
    pub(super) fn end(&self, id: &RawValue) {
        lock(&self.running).remove(id.get());
    }

    /// The client does not want an answer any more.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(cancel) = lock(&self.running).get(id) {
            cancel.cancel();
        }
    }

    /// The client is gone: nothing of its work is wanted.
    pub(super) fn cancel_all(&self) {
        for cancel in lock(&self.running).values() {
            cancel.cancel();
        }
    }

    /// Asks the client something, and waits for its answer.
    pub(super) async fn ask(&self, method: &str, params: Option<&RawValue>) -> Result<Raw, RpcError> {
        let session = self.within.as_deref().unwrap_or(self);
        let id = session.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        lock(&session.questions).insert(id, tell);
        // Ids of ours are texts, so that no client takes one for an id of its own.
        self.send(jsonrpc::request(&format!("\"backstop-{id}\""), method, params.map(RawValue::get))).await;
        let answer = tokio::time::timeout(ANSWER_MAX, told).await;
        lock(&session.questions).remove(&id);
        match answer {
            Ok(Ok(answer)) => answer,
            _ => Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the client did not answer")),
        }
    }

    /// The client answered a question.
    pub(super) fn answered(&self, id: &RawValue, result: Result<Raw, RpcError>) {
        let number = id.get().trim_matches('"').strip_prefix("backstop-").and_then(|n| n.parse().ok());
        let waiting = number.and_then(|number: u64| lock(&self.questions).remove(&number));
        if let Some(waiting) = waiting {
            let _ = waiting.send(result);
        }
    }
}

/// Passes what happens during a call on to its client: the progress, under the client's own token,
/// and log messages, where a client of the modern era wants those of this call.
pub(super) struct ToClient {
    pub(super) session: Arc<Session>,
    pub(super) token: Option<Value>,
    pub(super) log_level: Option<LogLevel>,
}

impl ProgressSink for ToClient {
    fn progress<'a>(&'a self, params: &'a RawValue) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let Some(token) = &self.token else { return };
            let params = jsonrpc::with_member(params, "progressToken", token);
            self.session.send(jsonrpc::notification("notifications/progress", Some(&params))).await;
        })
    }

    fn log<'a>(&'a self, params: &'a RawValue) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            if self.log_level.is_some_and(|least| LogLevel::of_message(Some(params)) >= least) {
                self.session.send(jsonrpc::notification("notifications/message", Some(params))).await;
            }
        })
    }
}
