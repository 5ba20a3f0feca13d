//! Statistics of a journal: computed by the store, shown by the report.

use crate::{Class, Outcome, Reason, SafeText, Timestamp};

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

/// What a journal adds up to: runs, attempts, errors and time, in all and by reason, operation and
/// day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// How many runs ended with each outcome, in the order of [`Outcome`]; outcomes that never
    /// happened are left out.
    pub runs: Vec<(Outcome, u64)>,
    /// How many runs have not ended: they go on or are halted.
    pub runs_open: u64,
    /// Everything together.
    pub total: Counts,
    /// By reason, most frequent first. Waits and retries belong to the error before them.
    pub reasons: Vec<(Reason, Counts)>,
    /// By operation (the program and its first word), those with the most lost time first.
    pub operations: Vec<(SafeText, Counts)>,
    /// How many operations are not listed.
    pub operations_left_out: u64,
    /// By day in UTC, oldest first, each with the first moment of the day.
    pub days: Vec<(Timestamp, Counts)>,
    /// What hooks were told of. It is part of the sums above, too.
    pub reported: Reported,
    /// What the agents of plans used, as far as they say so.
    pub used: AgentUse,
}

/// What agents used, as far as they say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentUse {
    /// Tokens that the models read.
    pub tokens_in: u64,
    /// Tokens that the models wrote.
    pub tokens_out: u64,
    /// The cost in millionths of a dollar, if any agent says so.
    pub cost_millionths: Option<u64>,
}

/// Errors of tasks and agents, reported by hooks. How long these took is not known, and neither is
/// how many others went well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reported {
    /// How many errors.
    pub errors: u64,
    /// How many of them in the last hour.
    pub last_hour: u64,
    /// When the first one was reported.
    pub first: Option<Timestamp>,
    /// By reason, most frequent first.
    pub reasons: Vec<(Reason, u64)>,
    /// How many reports ended with each outcome; `deferred` includes tasks that are tried again.
    pub outcomes: Vec<(Outcome, u64)>,
}

impl Stats {
    /// How many runs there are, ended or not.
    pub fn all_runs(&self) -> u64 {
        self.runs.iter().map(|(_, count)| count).sum::<u64>() + self.runs_open
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.all_runs() == 0 && self.total == Counts::default()
    }

    /// By class, most errors first.
    pub fn classes(&self) -> Vec<(Class, Counts)> {
        let mut classes: Vec<(Class, Counts)> = Vec::new();
        for (reason, counts) in &self.reasons {
            match classes.iter_mut().find(|(class, _)| *class == reason.class()) {
                Some((_, sum)) => sum.add(counts),
                None => classes.push((reason.class(), *counts)),
            }
        }
        classes.sort_by(|(a, x), (b, y)| y.errors.cmp(&x.errors).then(a.cmp(b)));
        classes
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
