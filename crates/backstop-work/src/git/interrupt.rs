//! Ends git processes that run, from another thread.

use backstop_exec::Stop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends git processes that run, from another thread: a hook of the user's may hang.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Whether no git is started any more that runs hooks.
    refuses_hooks: bool,
    running: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    hooks: bool,
    stop: Stop,
}

/// A git process that runs.
#[derive(Debug)]
pub(crate) struct RunningGit {
    interrupt: Interrupt,
    number: u64,
    stop: Stop,
}

impl RunningGit {
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }
}

impl Drop for RunningGit {
    fn drop(&mut self) {
        self.interrupt.state().running.retain(|entry| entry.number != self.number);
    }
}

impl Interrupt {
    /// Ends every git that runs hooks, and lets no other one begin. What git does without hooks
    /// goes on: it is short, and it saves work.
    pub fn hooks(&self) {
        self.request(|entry| entry.hooks);
    }

    /// Ends every git that runs. Later ones may begin, if they run no hooks.
    pub fn all(&self) {
        self.request(|_| true);
    }

    fn request(&self, which: fn(&Entry) -> bool) {
        let mut state = self.state();
        state.refuses_hooks = true;
        state.running.iter().filter(|entry| which(entry)).for_each(|entry| entry.stop.request());
    }

    /// Whether a git that runs hooks may not begin any more.
    pub(crate) fn refuses_hooks(&self) -> bool {
        self.state().refuses_hooks
    }

    /// Notes that a git process begins. `None` if it may not.
    pub(crate) fn begin(&self, hooks: bool) -> Option<RunningGit> {
        let mut state = self.state();
        if hooks && state.refuses_hooks {
            return None;
        }
        let (number, stop) = (state.next, Stop::new());
        state.next += 1;
        state.running.push(Entry { number, hooks, stop: stop.clone() });
        Some(RunningGit { interrupt: self.clone(), number, stop })
    }

    #[cfg(test)]
    pub(crate) fn is_running(&self) -> bool {
        !self.state().running.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
