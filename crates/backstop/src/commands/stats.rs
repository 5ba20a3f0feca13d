//! `backstop stats`: where the time went.

use super::runs;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_report::StatsBy;
use backstop_runtime::stats::stats_of;
use clap::{Args, ValueEnum};

/// Show what failed in this project, what retries cured, and how long was waited.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop stats --since 7d\n  backstop stats --by operation\n  backstop stats --prometheus > backstop.prom"
)]
pub(crate) struct Stats {
    /// Only this period, such as 7d, or since a time, such as 2026-01-05T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Group by
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// Only runs whose command contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) operation: Option<String>,
    /// Print JSON, with all tables
    #[arg(long, conflicts_with_all = ["by", "prometheus"])]
    pub(crate) json: bool,
    /// Print counters of everything recorded, in the Prometheus text format
    #[arg(long, conflicts_with_all = ["by", "since"])]
    pub(crate) prometheus: bool,
}

/// What a table is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Reason of the failure
    Reason,
    /// Class of the failure: transient, permanent, user, system
    Class,
    /// Program and its first argument
    Operation,
    /// Day, in UTC
    Day,
}

pub(crate) fn run(args: &Stats, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(runs::since).transpose()?;
    let project = process::open(&[], log_format)?;
    let report = stats_of(&project, since, args.operation.clone())?;
    let style = terminal::stdout_style();
    if args.json {
        return terminal::print_json(&backstop_report::stats_json(&report));
    }
    terminal::print(&if args.prometheus {
        backstop_report::stats_prometheus(&report)
    } else {
        match args.by {
            Some(by) => backstop_report::stats_by(&report, chosen(by), style),
            None => backstop_report::stats(&report, style),
        }
    })
}

fn chosen(by: By) -> StatsBy {
    match by {
        By::Reason => StatsBy::Reason,
        By::Class => StatsBy::Class,
        By::Operation => StatsBy::Operation,
        By::Day => StatsBy::Day,
    }
}
