//! `backstop stats`: where the time went.

use super::runs;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{AgentUse, HintedError, SafeText, SignatureHistory, Timestamp};
use backstop_report::{StatsBy, StatsReport};
use backstop_runtime::{Project, ProjectError};
use backstop_store::{Journal, StatsFilter};
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

/// Surfaces that record what a person overrides, and no work.
const NO_WORK: [&str; 2] = ["guard", "budget"];
/// How many signatures are shown.
const SIGNATURES_MAX: u32 = 10;

pub(crate) fn run(args: &Stats, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(runs::since).transpose()?;
    let project = process::open(&[], log_format)?;
    let filter = StatsFilter {
        since,
        operation_contains: args.operation.clone(),
        surfaces_left_out: NO_WORK.map(str::to_owned).to_vec(),
    };
    let journal = project.existing_journal()?;
    let stats = journal.map(|journal| journal.stats(&filter)).transpose()?.unwrap_or_default();
    let models = models(journal, since)?;
    let report =
        StatsReport { since, now: Some(process::now()), stats, signatures: signatures(&project), models };
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

/// What was used of each model, most tokens first.
fn models(
    journal: Option<&Journal>,
    since: Option<Timestamp>,
) -> Result<Vec<(SafeText, AgentUse)>, CliError> {
    let since = since.unwrap_or(Timestamp::from_millis(0));
    let used = journal.map(|journal| journal.usage(since)).transpose()?.unwrap_or_default();
    let mut rows: Vec<_> = used.into_iter().map(|(model, used)| (SafeText::new(model), used)).collect();
    rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.tokens_in.saturating_add(used.tokens_out)));
    Ok(rows)
}

fn chosen(by: By) -> StatsBy {
    match by {
        By::Reason => StatsBy::Reason,
        By::Class => StatsBy::Class,
        By::Operation => StatsBy::Operation,
        By::Day => StatsBy::Day,
    }
}

/// What was learned of the most frequent signatures. Where that cannot be read, the journal still
/// can.
fn signatures(project: &Project) -> Vec<SignatureHistory> {
    let known = || -> Result<Vec<SignatureHistory>, ProjectError> {
        Ok(match project.existing_limits()? {
            Some(store) => store.signature_histories(SIGNATURES_MAX)?,
            None => Vec::new(),
        })
    };
    known().unwrap_or_else(|error| {
        terminal::warn(&error.to_string(), HintedError::hints(&error).first().map(String::as_str));
        Vec::new()
    })
}
