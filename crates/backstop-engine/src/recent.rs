//! Counts the recent attempts of this process, for the retry budget.

use backstop_core::Recent;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many attempts are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The times of recent attempts, and which of them were retries.
#[derive(Debug, Default)]
pub(crate) struct RecentAttempts(Mutex<VecDeque<(Instant, bool)>>);

impl RecentAttempts {
    pub(crate) fn add(&self, at: Instant, is_retry: bool) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() == REMEMBERED_MAX {
            attempts.pop_front();
        }
        attempts.push_back((at, is_retry));
    }

    pub(crate) fn within(&self, now: Instant, window: Duration) -> Recent {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while attempts.front().is_some_and(|(at, _)| now.duration_since(*at) > window) {
            attempts.pop_front();
        }
        let retries = attempts.iter().filter(|(_, is_retry)| *is_retry).count() as u64;
        Recent { attempts: attempts.len() as u64, retries }
    }
}
