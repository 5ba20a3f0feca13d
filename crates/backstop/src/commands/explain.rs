//! `backstop explain`: the story of a run, or the page of a reason.

use super::runs::{journal_of, newest_run, no_runs, unknown_run};
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Reason, RunId, from_seed_name};
use backstop_report::{RunStory, to_json};
use backstop_store::RunState;
use clap::Args;

/// Show what happened in a run: each attempt, what failed, which rule recognised it, what was
/// decided and why. Or show the page of a reason.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop explain                    the last run of this project\n  backstop explain --log r-7f3a       with all that was kept of its output\n  backstop explain rate_limited       what a reason means, and what to do about it"
)]
pub(crate) struct Explain {
    /// A run such as `r-7f3a`, or a reason such as `rate_limited` (default: `last`, the newest run of
    /// this project)
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
        let newest = match project.existing_journal()? {
            Some(journal) => newest_run(journal)?,
            None => None,
        };
        match newest {
            Some(newest) => newest.id,
            // Nothing was asked for, so that there is nothing is no mistake.
            None if args.what.is_none() && !args.json => return terminal::print(NO_RUNS),
            None => return Err(no_runs()),
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
    terminal::print(&if args.json {
        format!("{}\n", to_json(&backstop_report::story_json(&story)))
    } else if args.markdown {
        backstop_report::story_markdown(&story, args.log)
    } else if args.log {
        backstop_report::story_log(&story, style)
    } else {
        backstop_report::story(&story, style)
    })
}

/// What is said where nothing is recorded yet.
const NO_RUNS: &str = "no runs are recorded in this project yet; `backstop exec -- COMMAND` makes one, and \
    `backstop explain REASON` explains a reason\n";

fn reason_page(what: &str, json: bool) -> Result<(), CliError> {
    let reason = from_seed_name(what).map_or_else(|| what.parse::<Reason>(), Ok)?;
    if json {
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
