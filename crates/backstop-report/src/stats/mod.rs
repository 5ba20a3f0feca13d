//! Statistics of a journal: an overview of about ten lines, a table, JSON, and counters for
//! Prometheus.
//!
//! It must not count or look anything up: the sums are given.

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
use backstop_core::{AgentUse, SafeText, SignatureHistory, Stats, Timestamp};
use std::time::Duration;

/// What a table of statistics is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsBy {
    /// A row for each reason.
    Reason,
    /// A row for each class.
    Class,
    /// A row for each program and its first word.
    Operation,
    /// A row for each day, in UTC.
    Day,
}

/// The sums of a journal, and what is shown beside them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsReport {
    /// The start of the period, where not everything was counted.
    pub since: Option<Timestamp>,
    /// The time of the report, for rates.
    pub now: Option<Timestamp>,
    /// The sums.
    pub stats: Stats,
    /// The most frequent signatures of all of the user's projects, most seen first.
    pub signatures: Vec<SignatureHistory>,
    /// What was used of each model by requests through the proxy, most tokens first.
    pub models: Vec<(SafeText, AgentUse)>,
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
