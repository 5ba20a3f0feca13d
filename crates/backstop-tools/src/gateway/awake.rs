//! Staying awake for a moment after each message of a client on standard streams.
//!
//! To wake a process that sleeps on another core takes tens of microseconds on a virtual machine:
//! longer than all that the gateway does for a short call, and it comes twice in each. So it looks
//! for the next message for a moment before it sleeps, as long as nobody else wants its core. Many
//! calls at once do not wait for that, and go together where it sleeps.

use super::{Session, lock};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long after a message.
const AWAKE: Duration = Duration::from_micros(50);

/// When the last message passed.
#[derive(Debug)]
pub(super) struct Awake {
    last: Mutex<Instant>,
    passed: Notify,
}

impl Awake {
    pub(super) fn new() -> Self {
        Self { last: Mutex::new(Instant::now()), passed: Notify::new() }
    }

    /// A message passed.
    pub(super) fn message(&self) {
        *lock(&self.last) = Instant::now();
        self.passed.notify_one();
    }

    /// Keeps this thread awake after messages of a client that waits for one answer. Never ends.
    pub(super) async fn stay(&self, session: &Session) {
        if std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
            return std::future::pending().await;
        }
        loop {
            self.passed.notified().await;
            while session.running() <= 1 && lock(&self.last).elapsed() < AWAKE {
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        }
    }
}
