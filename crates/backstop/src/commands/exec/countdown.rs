//! A wait that can be watched: one line on a terminal that counts down, and is gone when the wait
//! is over.

use crate::terminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Shorter waits are over before anybody has read the line.
const WORTH_SHOWING: Duration = Duration::from_secs(3);

/// The line, while there is one.
#[derive(Debug, Default)]
pub(super) struct Countdown(Mutex<Option<JoinHandle<()>>>);

impl Countdown {
    /// Counts down, where somebody watches.
    pub(super) fn start(&self, wait: Duration) {
        if wait < WORTH_SHOWING || !terminal::is_watched() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let until = Instant::now() + wait;
        let task = tokio::spawn(async move {
            loop {
                let left = until.saturating_duration_since(Instant::now());
                let whole = Duration::from_secs(left.as_secs_f64().ceil() as u64);
                terminal::say(&format!("\r\x1b[K{} left", backstop_core::duration::shown(whole)));
                sleep(Duration::from_secs(1).min(left.max(Duration::from_millis(50)))).await;
            }
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// The wait is over.
    pub(super) fn stop(&self) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
            terminal::say("\r\x1b[K");
        }
    }
}
