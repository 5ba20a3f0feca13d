//! The requests that a provider still takes in its current window, shared by all processes.
//!
//! The shared limits know it; where they cannot be written, this process keeps its own. A provider
//! that names no limit is remembered here, so that its requests ask no store.

use backstop_core::Timestamp;
use backstop_core::guard::GuardKey;
use backstop_core::request_window::{RequestWindow, RequestsLeft, WindowStep};
use backstop_store::LimitStore;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often it is looked whether another process has learned something.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many accounts and models are known at once.
const KEYS_MAX: usize = 1000;

/// What this process knows of the windows of accounts.
#[derive(Debug, Default)]
pub(super) struct Windows {
    known: Mutex<HashMap<GuardKey, RequestWindow>>,
    changed: Notify,
}

impl Windows {
    /// Takes one of the requests that are left, and gives its number; or how long the next window
    /// has to be waited for, where that is longer than `limit`.
    pub(super) async fn take(
        &self,
        store: &Arc<LimitStore>,
        key: &GuardKey,
        limit: Duration,
        now: impl Fn() -> Timestamp,
    ) -> Result<u64, Duration> {
        let began = now();
        loop {
            // Heard from now on, so that nothing is missed between looking and waiting.
            let changed = self.changed.notified();
            let (wait, is_asking) = match self.step(store, key, now()) {
                (_, WindowStep::Go(number)) => return Ok(number),
                (known, WindowStep::Wait(wait)) => (wait, known.is_asking()),
            };
            if now().since(began) + wait > limit {
                return Err(wait);
            }
            let wait = if is_asking { wait.min(LOOK_EVERY) } else { wait };
            let _ = tokio::time::timeout(wait, changed).await;
        }
    }

    fn step(&self, store: &LimitStore, key: &GuardKey, now: Timestamp) -> (RequestWindow, WindowStep) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEYS_MAX && !known.contains_key(key) {
            known.clear();
        }
        if let Some(unlimited @ RequestWindow::Unlimited(_)) = known.get(key) {
            let (after, step) = RequestWindow::take(Some(unlimited.clone()), now);
            if matches!(after, RequestWindow::Unlimited(_)) {
                return (after, step);
            }
        }
        let taken =
            store.take_request(key).unwrap_or_else(|_| RequestWindow::take(known.get(key).cloned(), now));
        known.insert(key.clone(), taken.0.clone());
        taken
    }

    /// Learns from an answer to the request of this number, or that it names no limit.
    pub(super) fn learn(
        &self,
        store: &LimitStore,
        key: &GuardKey,
        number: u64,
        said: Option<RequestsLeft>,
        now: Timestamp,
    ) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let was = known.get(key);
        if said.is_none() && matches!(was, Some(RequestWindow::Unlimited(_))) {
            return;
        }
        let learned = store
            .learn_window(key, number, said)
            .unwrap_or_else(|_| RequestWindow::learn(was.cloned(), number, said, now));
        known.insert(key.clone(), learned);
        drop(known);
        self.changed.notify_waiters();
    }

    /// Whether something would be learned from an answer without a limit.
    pub(super) fn is_asking(&self, key: &GuardKey) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).is_some_and(|known| !matches!(known, RequestWindow::Unlimited(_)))
    }
}
