//! A cancellation flag that any thread or task can set and wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// A request to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    set: Notify,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag: everything that waits for it stops.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::Release);
        self.0.set.notify_waiters();
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut set = std::pin::pin!(self.0.set.notified());
        // Whoever sets the flag from here on wakes us; whoever has set it before is seen.
        set.as_mut().enable();
        if !self.is_cancelled() {
            set.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everybody_who_waits_is_told_and_whoever_comes_later_too() {
        let cancel = Cancel::new();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let cancel = cancel.clone();
                tokio::spawn(async move { cancel.cancelled().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(!cancel.is_cancelled() && waiting.iter().all(|task| !task.is_finished()));
        let other = cancel.clone();
        std::thread::spawn(move || other.cancel()).join().unwrap();
        for task in waiting {
            task.await.unwrap();
        }
        cancel.cancelled().await;
        assert!(cancel.is_cancelled());
    }
}
