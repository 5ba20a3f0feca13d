//! `backstop stats`: where the time went.

use crate::cli::{By, LogFormat, Stats};
use crate::context::Context;
use crate::error::CliError;
use crate::{runs, terminal};
use backstop_core::SafeText;
use backstop_report::{SignatureRow, StatsBy, StatsReport, to_json};
use backstop_store::{Experience, LimitStore, StatsFilter};

/// Surfaces that record what a person overrides, and no work.
const NO_WORK: [&str; 2] = ["guard", "budget"];
/// How many signatures are shown.
const SIGNATURES_MAX: u32 = 10;

pub(crate) fn run(args: &Stats, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(runs::since).transpose()?;
    let context = Context::new(&[], log_format)?;
    let filter = StatsFilter {
        since,
        operation_contains: args.operation.clone(),
        surfaces_left_out: NO_WORK.map(str::to_owned).to_vec(),
    };
    let journal = context.existing_journal()?;
    let stats = journal.map(|journal| journal.stats(&filter)).transpose()?.unwrap_or_default();
    let report = StatsReport { since, stats, signatures: signatures(&context) };
    let style = terminal::stdout_style();
    terminal::print(&if args.json {
        format!("{}\n", to_json(&backstop_report::stats_json(&report)))
    } else if args.prometheus {
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

/// What was learned of the most frequent signatures. Where that cannot be read, the journal still can.
fn signatures(context: &Context) -> Vec<SignatureRow> {
    let known = || -> Result<Vec<Experience>, CliError> {
        Ok(match LimitStore::open_existing(&context.folder()?)? {
            Some(store) => store.experiences(SIGNATURES_MAX)?,
            None => Vec::new(),
        })
    };
    let rows = known().unwrap_or_else(|error| {
        terminal::warn(&error.to_string(), error.hints().first().map(String::as_str));
        Vec::new()
    });
    rows.into_iter()
        .map(|row| SignatureRow {
            signature: SafeText::new(row.signature),
            reason: row.reason,
            seen: row.seen,
            retried: row.retried,
            cured: row.cured,
            last: row.last_at,
        })
        .collect()
}
