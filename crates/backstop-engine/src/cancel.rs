//! Asking for the end, from anywhere.

use std::sync::Arc;
use tokio::sync::watch;

/// A request to stop. Clones share it.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Not asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ask for it.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was asked for.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is asked for.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as we do, so this cannot fail.
        let _ = receiver.wait_for(|asked| *asked).await;
    }
}
