//! What may be typed about sums of what was recorded.

use clap::{Args, ValueEnum};

/// Say where the time went in this project: what failed, what a retry cured, how long was waited.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop stats --since 7d\n  backstop stats --by operation\n  backstop stats --prometheus > backstop.prom"
)]
pub(crate) struct Stats {
    /// Only this last while, such as 7d, or since a time, such as 2026-01-05T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// A table by this
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// Only runs whose command contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) operation: Option<String>,
    /// Print JSON, with all tables
    #[arg(long, conflicts_with_all = ["by", "prometheus"])]
    pub(crate) json: bool,
    /// Print counters in the text format of Prometheus, of all that is recorded
    #[arg(long, conflicts_with_all = ["by", "since"])]
    pub(crate) prometheus: bool,
}

/// What a table is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// What failed
    Reason,
    /// Who or what has to change
    Class,
    /// The program and its first word
    Operation,
    /// The day, in UTC
    Day,
}

/// Say what `unknown` consists of: failures that no rule knows, alike ones together, with a rule to begin with.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    /// How far back, such as 30d, or since a time
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    pub(crate) since: String,
    /// How many groups are listed
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) limit: u32,
    /// Exit 1 if the last day has many more than the days before
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
