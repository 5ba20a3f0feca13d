//! `backstop explain`: the story of a run, or the page of a reason.

use super::runs::{events_of, no_run, no_runs};
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Reason, RunId, from_seed_name};
use backstop_report::{RunStory, to_json};
use backstop_store::RunFilter;
use clap::Args;

/// Tell the story of a run: each attempt, what failed, which rule says so, what was decided and
/// why. Or print the page of a reason.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A run, such as `r-7f3a`, `last` for the latest of this project, or a reason, such as
    /// `rate_limited`; a name that another system uses for a reason will do
    pub(crate) what: String,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A run's story, or a reason's page.
pub(crate) fn run(args: &Explain, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let is_run = args.what.strip_prefix("r-").is_some_and(|rest| !rest.is_empty());
    if !is_run && args.what != "last" {
        return reason_page(args);
    }
    let project = process::open(&[], log_format)?;
    let run: RunId = if args.what == "last" {
        let newest = match project.existing_journal()? {
            Some(journal) => journal.runs(&RunFilter { limit: 1, ..RunFilter::default() })?.pop(),
            None => None,
        };
        newest.ok_or_else(no_runs)?.id
    } else {
        args.what.parse()?
    };
    let events = events_of(&project, run)?;
    let story = RunStory::from_events(&events).ok_or_else(|| no_run(run))?;
    terminal::print(&if args.json {
        format!("{}\n", to_json(&backstop_report::story_json(&story)))
    } else if args.markdown {
        backstop_report::story_markdown(&story)
    } else {
        backstop_report::story(&story, terminal::stdout_style())
    })
}

fn reason_page(args: &Explain) -> Result<(), CliError> {
    let reason = from_seed_name(&args.what).map_or_else(|| args.what.parse::<Reason>(), Ok)?;
    if args.json {
        let all = backstop_report::reasons_json();
        let mut row = all["reasons"]
            .as_array()
            .and_then(|rows| rows.iter().find(|row| row["reason"] == reason.code()).cloned());
        if let Some(row) = &mut row {
            row["schema"] = all["schema"].clone();
        }
        return terminal::print(&format!("{}\n", to_json(&row)));
    }
    terminal::print(&backstop_report::reason_page(reason))
}
