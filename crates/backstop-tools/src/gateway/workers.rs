//! What becomes of the messages of a client on standard streams, and the tasks that answer its
//! requests.
//!
//! A task that is done waits for the next request: making one takes as long as a good part of the
//! work on a short call.

use super::requests::too_many;
use super::{Gateway, Session, lock};
use crate::jsonrpc::{self, BadMessage, INVALID_REQUEST, Message, PARSE_ERROR, Raw, RpcError};
use backstop_engine::Cancel;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::mpsc;

/// How many tasks wait for a request.
const IDLE_MAX: usize = 64;

/// A request of a client.
struct Request {
    id: Raw,
    method: String,
    params: Option<Raw>,
    /// Fires when the client does not want an answer any more.
    cancel: Cancel,
}

/// A request, and where its task gets the next one.
struct Job {
    request: Request,
    next: mpsc::Sender<Job>,
}

/// The tasks of one client. Those that wait end when this is dropped.
pub(super) struct Workers {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    idle: Mutex<Vec<mpsc::Sender<Job>>>,
}

impl Workers {
    pub(super) fn new(gateway: &Arc<Gateway>, session: &Arc<Session>) -> Arc<Self> {
        let (gateway, session) = (Arc::clone(gateway), Arc::clone(session));
        Arc::new(Self { gateway, session, idle: Mutex::default() })
    }

    /// Takes a message of the client. Gives the answer where there is one at once.
    pub(super) fn take(self: &Arc<Self>, message: Result<Message, BadMessage>) -> Option<Vec<u8>> {
        match message {
            Ok(Message::Request { id, method, params }) => {
                let Some(cancel) = self.session.begin(&id) else {
                    return Some(jsonrpc::response(&id, &Err(too_many())));
                };
                self.answer(Request { id, method, params, cancel });
            }
            Ok(Message::Notification { method, params }) => {
                self.gateway.noticed(&self.session, &method, params.as_deref());
            }
            Ok(Message::Response { id, result }) => self.session.answered(&id, result),
            Err(bad) => {
                let code = if bad == BadMessage::NotRpc { INVALID_REQUEST } else { PARSE_ERROR };
                let error = RpcError::new(code, bad.to_string());
                return Some(jsonrpc::response(RawValue::NULL, &Err(error)));
            }
        }
        None
    }

    /// Answers a request, behind the back of whoever reads the next one.
    fn answer(self: &Arc<Self>, request: Request) {
        let idle = lock(&self.idle).pop();
        let request = match idle {
            None => request,
            Some(next) => match next.clone().try_send(Job { request, next }) {
                Ok(()) => return,
                // Its task has ended.
                Err(error) => error.into_inner().request,
            },
        };
        let (next, jobs) = mpsc::channel(1);
        tokio::spawn(work(Arc::downgrade(self), Job { request, next }, jobs));
    }
}

/// Answers one request after the other.
async fn work(workers: Weak<Workers>, first: Job, mut jobs: mpsc::Receiver<Job>) {
    let mut job = Some(first);
    while let Some(Job { request, next }) = job {
        // Its client may leave meanwhile.
        let Some((gateway, session)) =
            workers.upgrade().map(|workers| (Arc::clone(&workers.gateway), Arc::clone(&workers.session)))
        else {
            return;
        };
        answer(&gateway, &session, request).await;
        drop((gateway, session));
        {
            let Some(workers) = workers.upgrade() else { return };
            let mut idle = lock(&workers.idle);
            if idle.len() >= IDLE_MAX {
                return;
            }
            idle.push(next);
        }
        job = jobs.recv().await;
    }
}

async fn answer(gateway: &Arc<Gateway>, session: &Arc<Session>, request: Request) {
    let Request { id, method, params, cancel } = request;
    let result = gateway.answer(session, (&id, &method), params.as_deref(), cancel.clone()).await;
    session.end(&id);
    // Nobody waits for the answer to a request that was cancelled.
    if !cancel.is_cancelled() {
        session.send(jsonrpc::response(&id, &result)).await;
    }
}
