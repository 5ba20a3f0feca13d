//! Asks a supervised command to end, from another thread.

use crate::supervise::Message;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// A request to end a command, from another thread. The first request sends SIGTERM, the second
/// SIGKILL.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    requests: u8,
    to: Option<Sender<Message>>,
}

impl Stop {
    /// No request was made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the end of the command. The second request kills it at once.
    pub fn request(&self) {
        let mut state = self.state();
        state.requests = state.requests.saturating_add(1);
        if let Some(to) = &state.to {
            let _ = to.send(Message::Stop);
        }
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u8 {
        self.state().requests
    }

    /// Pauses the command and its time limits until this process continues (Ctrl-Z).
    pub fn pause(&self) -> bool {
        self.send(Message::Pause)
    }

    /// Passes a new terminal size on to the command's pseudo-terminal.
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
