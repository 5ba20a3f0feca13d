//! Asks a supervised command to end, from another thread.

use crate::mailbox::Mailbox;
use crate::supervise::Message;
use std::sync::{Arc, Mutex, PoisonError};

/// A request to end commands, from another thread. The first request sends SIGTERM or the signal
/// that is passed on, the second SIGKILL. It reaches every command that was started with it and
/// still runs.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    requests: u8,
    /// The signal of the first request, where one is passed on.
    signal: Option<i32>,
    /// Whether keys (Ctrl-C, Ctrl-\) have interrupted the command that runs.
    keys: bool,
    /// The supervisors of the commands that run, by number.
    to: Vec<(u64, Mailbox)>,
    next: u64,
}

/// A supervisor that hears of requests until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    stop: Stop,
    number: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.state().to.retain(|(number, _)| *number != self.number);
    }
}

impl Stop {
    /// No request was made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the end of the command. The second request kills it at once.
    pub fn request(&self) {
        self.request_by(None);
    }

    /// Requests the end of the command by passing a signal on that we received.
    pub fn pass_on(&self, signal: i32) {
        self.request_by(Some(signal));
    }

    fn request_by(&self, signal: Option<i32>) {
        let mut state = self.state();
        if state.requests == 0 {
            state.signal = signal;
        }
        state.requests = state.requests.saturating_add(1);
        for (_, to) in &state.to {
            to.send(Message::Stop);
        }
    }

    /// Notes that a key of the terminal (Ctrl-C, Ctrl-\) has sent a signal to our process group,
    /// and so to the command. What the command does about it is the command's affair; where nothing
    /// of it does anything about it, the second key ends it. Returns false if no command runs.
    pub fn interrupted_by_key(&self, signal: i32) -> bool {
        let mut state = self.state();
        if state.to.is_empty() {
            return false;
        }
        if state.keys && crate::tree::is_ignored_below_us(signal) {
            for (_, to) in &state.to {
                to.send(Message::Insisted);
            }
        }
        state.keys = true;
        true
    }

    pub(crate) fn was_interrupted_by_key(&self) -> bool {
        self.state().keys
    }

    /// The signal to send first: SIGTERM unless another one is passed on.
    pub(crate) fn signal(&self) -> i32 {
        self.state().signal.unwrap_or(libc::SIGTERM)
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u8 {
        self.state().requests
    }

    /// Pauses the command and its time limits until this process continues. Returns false if no
    /// command runs.
    pub fn pause(&self) -> bool {
        self.send(|| Message::Pause)
    }

    /// Ctrl-Z was sent to our process group, and so to the command: pauses when the command does.
    /// Returns false if no command runs.
    pub fn paused_by_key(&self) -> bool {
        !self.state().to.is_empty()
    }

    /// Passes a signal on to the command's first process, which does with it what it does without
    /// us. Returns false if no command runs.
    pub fn forward(&self, signal: i32) -> bool {
        self.send(|| Message::Forward(signal))
    }

    /// Passes a new terminal size on to the command's pseudo-terminal.
    pub fn resized(&self) -> bool {
        self.send(|| Message::Resized)
    }

    fn send(&self, message: impl Fn() -> Message) -> bool {
        self.state().to.iter().filter(|(_, to)| to.send(message())).count() > 0
    }

    pub(crate) fn listen(&self, to: Mailbox) -> Listening {
        let mut state = self.state();
        state.keys = false;
        let number = state.next;
        state.next += 1;
        state.to.push((number, to));
        Listening { stop: self.clone(), number }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
