//! Where messages of a server arrive, and who waits for them.

use super::{Exit, TransportFailure, TransportFailureKind};
use crate::jsonrpc::{Message, Raw, RpcError};
use backstop_core::Dispatch;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// How many events of one call may wait to be taken.
const EVENTS_MAX: usize = 64;
/// How many characters of output that is no message are kept.
const GARBAGE_CHARS_MAX: usize = 200;

/// What happens to a request that was sent.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// The parameters of a progress notification.
    Progress(Raw),
    /// The parameters of a log message.
    Log(Raw),
    /// The answer.
    Answer(Result<Raw, Box<RpcError>>),
    /// There will be none.
    Failed(Box<TransportFailure>),
}

/// What a server says that is no answer.
#[derive(Debug)]
pub(crate) enum PeerMessage {
    Notification {
        method: String,
        params: Option<Raw>,
    },
    Request {
        id: Raw,
        method: String,
        params: Option<Raw>,
        /// The request of ours that it is asked during, where the server says so.
        related: Option<u64>,
    },
}

#[derive(Debug)]
struct Pending {
    events: mpsc::Sender<CallEvent>,
    sent: Arc<AtomicBool>,
    /// Whether nobody who has work to do waits for it.
    is_behind: bool,
}

/// What somebody holds who waits for an answer. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: u64,
    pub(crate) events: mpsc::Receiver<CallEvent>,
    /// Whether any byte of the request may have reached the server.
    pub(crate) sent: Arc<AtomicBool>,
    inbox: Arc<Inbox>,
}

impl Waiting {
    /// Waits behind everybody's back: a server that is asked nothing else is not used.
    pub(crate) fn stays_behind(&self) {
        if let Some(pending) = self.inbox.pending().get_mut(&self.id) {
            pending.is_behind = true;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.inbox.pending().remove(&self.id);
    }
}

/// Where messages of a server arrive.
#[derive(Debug)]
pub(crate) struct Inbox {
    pending: Mutex<HashMap<u64, Pending>>,
    peer: mpsc::Sender<PeerMessage>,
    next_id: AtomicU64,
    /// Answers that nobody waited for: to another id, or a second one.
    strays: AtomicU64,
    garbage: Mutex<Option<String>>,
    /// Lines that were no message, or too long for one.
    unreadable: AtomicU64,
    closed: watch::Sender<Option<TransportFailureKind>>,
    /// How many questions of the server are being answered.
    asking: AtomicU64,
    /// Whether nobody waits any more for whoever does not take what is theirs.
    given_up: watch::Sender<bool>,
}

/// A question of the server that is being answered, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Asking(Arc<Inbox>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where one message goes.
#[derive(Debug)]
pub(super) enum Delivery {
    Call(mpsc::Sender<CallEvent>, CallEvent),
    Calls(Vec<(mpsc::Sender<CallEvent>, CallEvent)>, PeerMessage),
    Peer(PeerMessage),
    Nowhere,
}

impl Inbox {
    /// An inbox, and where what the server says by itself comes out.
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<PeerMessage>) {
        let (peer, from_peer) = mpsc::channel(EVENTS_MAX);
        let inbox = Self {
            pending: Mutex::default(),
            peer,
            next_id: AtomicU64::new(1),
            strays: AtomicU64::new(0),
            garbage: Mutex::default(),
            unreadable: AtomicU64::new(0),
            closed: watch::Sender::new(None),
            asking: AtomicU64::new(0),
            given_up: watch::Sender::new(false),
        };
        (Arc::new(inbox), from_peer)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the answer to a request that is about to be sent.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let sent = Arc::new(AtomicBool::new(false));
        let pending = Pending { events: sender, sent: Arc::clone(&sent), is_behind: false };
        self.pending().insert(id, pending);
        Waiting { id, events, sent, inbox: Arc::clone(self) }
    }

    /// Notes that a request is being written now. Returns false if nobody waits for it any more: it
    /// need not be sent.
    pub(crate) fn begins_to_send(&self, id: u64) -> bool {
        match self.pending().get(&id) {
            Some(pending) => {
                pending.sent.store(true, Ordering::Release);
                true
            }
            None => false,
        }
    }

    /// Notes that a question of the server is being answered.
    pub(crate) fn asks(self: &Arc<Self>) -> Asking {
        self.asking.fetch_add(1, Ordering::Relaxed);
        Asking(Arc::clone(self))
    }

    /// Whether a question of the server is being answered.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Whether nobody waits for anything, other than behind everybody's back.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending().values().all(|pending| pending.is_behind)
    }

    /// Waits until nobody waits for the answer to a request any more.
    pub(super) async fn until_unwanted(&self, id: u64) {
        let events = self.pending().get(&id).map(|pending| pending.events.clone());
        if let Some(events) = events {
            events.closed().await;
        }
    }

    /// Lines and answers that were of no use: what was no message, and answers to nothing.
    pub(crate) fn oddities(&self) -> (u64, u64) {
        (self.unreadable.load(Ordering::Relaxed), self.strays.load(Ordering::Relaxed))
    }

    /// A message arrived; `within` is the request of ours whose answer it came with.
    pub(crate) async fn receive(&self, bytes: &[u8], within: Option<u64>) {
        let mut delivery = self.sort(bytes);
        if let Delivery::Peer(PeerMessage::Request { related, .. }) = &mut delivery {
            *related = related.or(within);
        }
        self.deliver(delivery).await;
    }

    /// Delivers a message. Waits where whoever it is for has not taken earlier ones.
    pub(super) async fn deliver(&self, delivery: Delivery) {
        match self.deliver_now(delivery) {
            Some(Delivery::Call(to, event)) => {
                tokio::select! {
                    _ = to.send(event) => {}
                    () = self.until_given_up() => {}
                }
            }
            Some(Delivery::Peer(message)) => {
                tokio::select! {
                    _ = self.peer.send(message) => {}
                    () = self.until_given_up() => {}
                }
            }
            _ => {}
        }
    }

    /// The connection is about to be closed: nobody is waited for any more.
    pub(super) fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    async fn until_given_up(&self) {
        let mut receiver = self.given_up.subscribe();
        let _ = receiver.wait_for(|given_up| *given_up).await;
    }

    /// Delivers a message, or gives it back where it has to wait.
    pub(super) fn deliver_now(&self, delivery: Delivery) -> Option<Delivery> {
        match delivery {
            Delivery::Call(to, event) => match to.try_send(event) {
                Err(TrySendError::Full(event)) => return Some(Delivery::Call(to, event)),
                Ok(()) | Err(TrySendError::Closed(_)) => {}
            },
            Delivery::Calls(calls, message) => {
                for (to, event) in calls {
                    let _ = to.try_send(event);
                }
                let _ = self.peer.try_send(message);
            }
            Delivery::Peer(message) => {
                // What wants no answer is left out where nobody keeps up with it.
                if let Err(TrySendError::Full(message @ PeerMessage::Request { .. })) =
                    self.peer.try_send(message)
                {
                    return Some(Delivery::Peer(message));
                }
            }
            Delivery::Nowhere => {}
        }
        None
    }

    /// Says where a message goes. Log messages belong to no call: every call that runs is told, and
    /// what does not fit is dropped, so that a server that floods them delays nothing.
    pub(super) fn sort(&self, bytes: &[u8]) -> Delivery {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Delivery::Nowhere;
        }
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(_) => {
                self.unreadable(bytes);
                return Delivery::Nowhere;
            }
        };
        match message {
            Message::Response { id, result } => {
                let waiting = id.get().parse().ok().and_then(|id: u64| self.pending().remove(&id));
                match waiting {
                    Some(pending) => {
                        Delivery::Call(pending.events, CallEvent::Answer(result.map_err(Box::new)))
                    }
                    None => {
                        self.strays.fetch_add(1, Ordering::Relaxed);
                        Delivery::Nowhere
                    }
                }
            }
            Message::Notification { method, params } => match (method.as_str(), params) {
                ("notifications/progress", Some(params)) => self.progress(params),
                ("notifications/message", Some(params)) => {
                    let running: Vec<_> = self.pending().values().map(|p| p.events.clone()).collect();
                    let calls = running.into_iter().map(|to| (to, CallEvent::Log(params.clone()))).collect();
                    Delivery::Calls(calls, PeerMessage::Notification { method, params: Some(params) })
                }
                (_, params) => Delivery::Peer(PeerMessage::Notification { method, params }),
            },
            Message::Request { id, method, params } => {
                let related = params.as_deref().and_then(|params| self.related(params));
                Delivery::Peer(PeerMessage::Request { id, method, params, related })
            }
        }
    }

    /// The request of ours that a question's `_meta` names by its progress token.
    fn related(&self, params: &RawValue) -> Option<u64> {
        let token = crate::connection::meta_of(params).get("progressToken")?.as_u64()?;
        self.pending().contains_key(&token).then_some(token)
    }

    fn progress(&self, params: Raw) -> Delivery {
        #[derive(Deserialize)]
        struct Token {
            #[serde(rename = "progressToken")]
            token: u64,
        }
        let token: Option<Token> = serde_json::from_str(params.get()).ok();
        let to = token.and_then(|Token { token }| self.pending().get(&token).map(|p| p.events.clone()));
        to.map_or(Delivery::Nowhere, |to| Delivery::Call(to, CallEvent::Progress(params)))
    }

    /// Something arrived that is no message.
    pub(crate) fn unreadable(&self, bytes: &[u8]) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * GARBAGE_CHARS_MAX)]);
        let text: String = text.chars().take(GARBAGE_CHARS_MAX).collect();
        *self.garbage.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// A message arrived that is too large to be read: the request that it answers fails, by the id
    /// at its beginning, or because it is the only one that waits.
    pub(crate) fn too_large(&self, head: &[u8]) {
        let waiting = {
            let pending = self.pending();
            let only = pending.keys().next().copied().filter(|_| pending.len() == 1);
            crate::jsonrpc::id_of_head(head).filter(|id| pending.contains_key(id)).or(only)
        };
        match waiting {
            Some(id) => {
                self.fail(id, TransportFailure::new(Dispatch::Answered, TransportFailureKind::TooLarge));
            }
            None => self.unreadable(b"(a line that is too long)"),
        }
    }

    /// The last that arrived and was no message.
    pub(crate) fn garbage(&self) -> Option<String> {
        self.garbage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A request will not be answered.
    pub(crate) fn fail(&self, id: u64, failure: TransportFailure) {
        let waiting = self.pending().remove(&id);
        if let Some(pending) = waiting {
            // What does not fit is found out by the end of the channel.
            let _ = pending.events.try_send(CallEvent::Failed(Box::new(failure)));
        }
    }

    /// The connection is closed: nothing will be answered any more.
    pub(crate) fn close(&self, kind: TransportFailureKind) {
        self.closed.send_replace(Some(kind.clone()));
        let waiting: Vec<Pending> = self.pending().drain().map(|(_, pending)| pending).collect();
        for pending in waiting {
            let sent = pending.sent.load(Ordering::Acquire);
            let dispatch = if sent { Dispatch::Lost } else { Dispatch::NotDispatched };
            let failure = Box::new(TransportFailure::new(dispatch, kind.clone()));
            let _ = pending.events.try_send(CallEvent::Failed(failure));
        }
    }

    /// The program has ended.
    pub(crate) fn ended(&self, exit: Exit) {
        self.close(TransportFailureKind::Ended(Arc::new(exit)));
    }

    /// Why it is closed, if it is.
    pub(crate) fn closed(&self) -> Option<TransportFailureKind> {
        self.closed.borrow().clone()
    }

    /// Waits until it is closed.
    pub(crate) async fn until_closed(&self) {
        let mut receiver = self.closed.subscribe();
        let _ = receiver.wait_for(Option::is_some).await;
    }
}
