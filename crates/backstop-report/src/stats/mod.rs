//! Where the time went: what a journal adds up to, in ten lines, as a table, for programs and for Prometheus.
//!
//! It must not count or look anything up: sums in, text out.

mod overview;
mod prometheus;
mod rows;
mod stats_json;
#[cfg(test)]
mod tests;

pub use overview::stats;
pub use prometheus::stats_prometheus;
pub use rows::stats_by;
pub use stats_json::stats_json;

use crate::run::duration;
use backstop_core::{Class, Counts, Outcome, Reason, SafeText, Timestamp};
use std::time::Duration;

/// What tables are made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsBy {
    /// By reason.
    Reason,
    /// By class.
    Class,
    /// By program and first word.
    Operation,
    /// By day, in UTC.
    Day,
}

/// What is known of one signature of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureRow {
    /// The message with its variable parts taken out.
    pub signature: SafeText,
    /// What it is.
    pub reason: Reason,
    /// How often it was seen.
    pub seen: u64,
    /// How often it was tried again.
    pub retried: u64,
    /// How often that helped.
    pub cured: u64,
    /// When it was last seen.
    pub last: Timestamp,
}

/// What a journal adds up to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsReport {
    /// From when on it was counted, where not everything was.
    pub since: Option<Timestamp>,
    /// How many runs ended like this.
    pub runs: Vec<(Outcome, u64)>,
    /// How many runs go on or are halted.
    pub runs_open: u64,
    /// All of it.
    pub total: Counts,
    /// By reason, most frequent first.
    pub reasons: Vec<(Reason, Counts)>,
    /// By program and first word, those with the most lost time first.
    pub operations: Vec<(SafeText, Counts)>,
    /// How many operations are not listed.
    pub operations_left_out: u64,
    /// By day in UTC, oldest first.
    pub days: Vec<(Timestamp, Counts)>,
    /// The most frequent signatures of all of the user's projects, most seen first.
    pub signatures: Vec<SignatureRow>,
}

impl StatsReport {
    fn runs_in_all(&self) -> u64 {
        self.runs.iter().map(|(_, count)| count).sum::<u64>() + self.runs_open
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.runs_in_all() == 0 && self.total == Counts::default()
    }

    fn classes(&self) -> Vec<(Class, Counts)> {
        let mut classes: Vec<(Class, Counts)> = Vec::new();
        for (reason, tally) in &self.reasons {
            match classes.iter_mut().find(|(class, _)| *class == reason.class()) {
                Some((_, sum)) => sum.add(tally),
                None => classes.push((reason.class(), *tally)),
            }
        }
        classes.sort_by(|(a, x), (b, y)| y.errors.cmp(&x.errors).then(a.cmp(b)));
        classes
    }
}

/// `2025-10-09`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn took(ms: u64) -> String {
    duration(Duration::from_millis(ms))
}

/// `17.1 %`, `17 %`; nothing of nothing is `-`.
pub(crate) fn percent(part: u64, of: u64) -> String {
    if of == 0 {
        return "-".to_owned();
    }
    let tenths = (u128::from(part) * 2000 + u128::from(of)) / (u128::from(of) * 2);
    if tenths.is_multiple_of(10) {
        format!("{} %", tenths / 10)
    } else {
        format!("{}.{} %", tenths / 10, tenths % 10)
    }
}
