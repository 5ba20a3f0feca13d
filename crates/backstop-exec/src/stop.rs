//! Asking a supervised command to end.

use crate::supervise::Message;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// Asks a command to end, from another thread. The first request is polite, the second is not.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    requests: u8,
    to: Option<Sender<Message>>,
}

impl Stop {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ask it to end. Asked again, it is killed at once.
    pub fn request(&self) {
        let mut state = self.state();
        state.requests = state.requests.saturating_add(1);
        if let Some(to) = &state.to {
            let _ = to.send(Message::Stop);
        }
    }

    /// How often it was asked.
    pub fn requests(&self) -> u8 {
        self.state().requests
    }

    /// Stops the clock and the command until this process goes on (Ctrl-Z).
    pub fn pause(&self) -> bool {
        self.send(Message::Pause)
    }

    /// The terminal has another size.
    pub fn resized(&self) -> bool {
        self.send(Message::Resized)
    }

    fn send(&self, message: Message) -> bool {
        self.state().to.as_ref().is_some_and(|to| to.send(message).is_ok())
    }

    pub(crate) fn listen(&self, to: Sender<Message>) {
        self.state().to = Some(to);
    }

    pub(crate) fn deafen(&self) {
        self.state().to = None;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
