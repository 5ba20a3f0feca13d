//! `backstop explain`: the story of a run, or the page of a reason.

use super::runs::{journal_of, unknown_run};
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Reason, RunId, RunState, from_seed_name};
use backstop_report::{NO_RUNS, RunStory, reason_json};
use backstop_runtime::runs::{self, RunsError};
use clap::Args;

/// Show what happened in a run: each attempt, what failed, which rule recognised it, what was
/// decided and why. Or show the page of a reason.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop explain                    the last run of this project\n  backstop explain --log r-7f3a       with all that was kept of its output\n  backstop explain rate_limited       what a reason means, and what to do about it"
)]
pub(crate) struct Explain {
    /// A run such as `r-7f3a`, or a reason such as `rate_limited` (default: `last`, the newest run
    /// of this project)
    pub(crate) what: Option<String>,
    /// Show all that was kept of the output of failed attempts, both streams in order
    #[arg(long)]
    pub(crate) log: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A run's story, or a reason's page.
pub(crate) fn run(args: &Explain, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let what = args.what.as_deref().unwrap_or("last");
    let is_run = what.strip_prefix("r-").is_some_and(|rest| !rest.is_empty());
    if !is_run && what != "last" {
        return reason_page(what, args.json);
    }
    let project = process::open(&[], log_format)?;
    let run: RunId = if what == "last" {
        match runs::newest(&project)? {
            Some(newest) => newest,
            // Nothing was asked for, so that there is nothing is no mistake.
            None if args.what.is_none() && !args.json => return terminal::print(NO_RUNS),
            None => return Err(RunsError::NoRuns.into()),
        }
    } else {
        what.parse()?
    };
    let journal = journal_of(&project, run)?;
    let story = RunStory::from_events(&journal.load(run)?);
    let mut story = story.ok_or_else(|| unknown_run(&project, run))?;
    if let Some(summary) = journal.run(run)?.filter(|summary| summary.state == RunState::Open) {
        story.is_alive = Some(process::is_alive(&summary.process));
    }
    if args.log || !args.json {
        story = story.with_logs(journal.outputs(run)?);
    }
    let style = terminal::stdout_style();
    if args.json {
        return terminal::print_json(&backstop_report::story_json(&story));
    }
    terminal::print(&if args.markdown {
        backstop_report::story_markdown(&story, args.log)
    } else if args.log {
        backstop_report::story_log(&story, style)
    } else {
        backstop_report::story(&story, style)
    })
}

fn reason_page(what: &str, json: bool) -> Result<(), CliError> {
    let reason = from_seed_name(what).map_or_else(|| what.parse::<Reason>(), Ok)?;
    if json {
        return terminal::print_json(&reason_json(reason));
    }
    terminal::print(&backstop_report::reason_page(reason))
}
