//! The retry budget: the share of all attempts that may be retries, so that an outage is not
//! multiplied.

use std::time::Duration;

/// The share of recent attempts that may be retries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// How far back attempts count.
    pub window: Duration,
    /// The number of retries that is always allowed within the window.
    pub reserve: u64,
    /// Beyond the reserve, the largest share of retries, in percent.
    pub share_percent: u64,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { window: Duration::from_secs(60), reserve: 30, share_percent: 50 }
    }
}

/// The recent attempts of everybody who shares a retry budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recent {
    /// The number of attempts.
    pub attempts: u64,
    /// The number of attempts that were retries.
    pub retries: u64,
}

impl RetryBudget {
    /// Whether one more retry is allowed.
    pub fn allows(&self, recent: Recent) -> bool {
        let share = recent.attempts.saturating_mul(self.share_percent) / 100;
        recent.retries < self.reserve.max(share)
    }
}
