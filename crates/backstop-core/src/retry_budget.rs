//! How many retries an outage may cost: a share of the traffic, not a number for each operation.

use std::time::Duration;

/// How much of the recent traffic may be retries, so that an outage is not multiplied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// How far back to look.
    pub window: Duration,
    /// So many retries are always allowed within it.
    pub reserve: u64,
    /// Beyond that, at most this share of all attempts, in percent.
    pub share_percent: u64,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { window: Duration::from_secs(60), reserve: 30, share_percent: 50 }
    }
}

/// What was attempted lately, by everybody who shares a retry budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recent {
    /// All attempts.
    pub attempts: u64,
    /// Those that were not the first of their operation.
    pub retries: u64,
}

impl RetryBudget {
    /// Whether one more retry is within it.
    pub fn allows(&self, recent: Recent) -> bool {
        let share = recent.attempts.saturating_mul(self.share_percent) / 100;
        recent.retries < self.reserve.max(share)
    }
}
