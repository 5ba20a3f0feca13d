//! What a journal adds up to: made by the store, shown by the report.

/// Numbers that add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Attempts that ended, lost ones included.
    pub attempts: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those of which nobody knows how they ended.
    pub lost: u64,
    /// Errors that were classified.
    pub errors: u64,
    /// Recoveries that were tried, each with an attempt.
    pub retried: u64,
    /// Those that helped.
    pub cured: u64,
    /// How long attempts took that failed.
    pub failed_ms: u64,
    /// How long all attempts took.
    pub attempts_ms: u64,
    /// How long was waited before trying again.
    pub waited_ms: u64,
    /// How long was waited for guards.
    pub guard_ms: u64,
}

impl Counts {
    /// Attempts that did not succeed.
    pub fn failed(&self) -> u64 {
        self.attempts.saturating_sub(self.succeeded)
    }

    /// How long was lost: in attempts that failed, and in waiting.
    pub fn lost_ms(&self) -> u64 {
        self.failed_ms.saturating_add(self.waited_ms).saturating_add(self.guard_ms)
    }

    /// Adds the other one.
    pub fn add(&mut self, other: &Counts) {
        let pairs = [
            (&mut self.attempts, other.attempts),
            (&mut self.succeeded, other.succeeded),
            (&mut self.lost, other.lost),
            (&mut self.errors, other.errors),
            (&mut self.retried, other.retried),
            (&mut self.cured, other.cured),
            (&mut self.failed_ms, other.failed_ms),
            (&mut self.attempts_ms, other.attempts_ms),
            (&mut self.waited_ms, other.waited_ms),
            (&mut self.guard_ms, other.guard_ms),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Errors, and how many of them nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Errors that were classified as `unknown`.
    pub unknown: u64,
    /// All errors that were classified.
    pub errors: u64,
}

impl Share {
    /// In percent; nothing of nothing is 0.
    pub fn percent(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
        let of = |n: u64| n as f64;
        if self.errors == 0 { 0.0 } else { 100.0 * of(self.unknown) / of(self.errors) }
    }
}
