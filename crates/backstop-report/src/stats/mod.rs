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
use backstop_core::{Reason, SafeText, Stats, Timestamp};
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

/// The sums of a journal, and what is shown beside them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsReport {
    /// From when on it was counted, where not everything was.
    pub since: Option<Timestamp>,
    /// The sums.
    pub stats: Stats,
    /// The most frequent signatures of all of the user's projects, most seen first.
    pub signatures: Vec<SignatureRow>,
}

/// `2025-10-09`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn duration_text(ms: u64) -> String {
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
