//! `backstop runs`, and finding one of them.

use super::demo::demo_states;
use super::explain::{self, Explain};
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Event, RunId, Timestamp};
use backstop_report::RunList;
use backstop_runtime::Project;
use backstop_runtime::runs::{self, RunsError, Wanted};
use backstop_store::Journal;
use clap::{Args, Subcommand};

/// List the runs of this project, newest first, or show one of them.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  backstop runs --failed --since 1d\n  backstop runs --all -n 50\n  backstop runs show r-7f3a --log"
)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
    /// List the runs of every project of this user
    #[arg(long)]
    pub(crate) all: bool,
    /// The number of runs to list
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only runs that did not end well
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only runs that began within this time, such as 2h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with a run.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// Show what happened in a run, as `backstop explain RUN` does
    Show(Explain),
}

/// Lists the runs of this project, or shows one.
pub(crate) fn run(args: &Runs, log_format: Option<LogFormat>) -> Result<(), CliError> {
    match &args.action {
        Some(RunsAction::Show(show)) => {
            let what = show.what.as_deref().unwrap_or("last");
            match what.parse::<RunId>() {
                Err(error) if what != "last" => Err(error.into()),
                _ => explain::run(show, log_format),
            }
        }
        None => list(args, log_format),
    }
}

fn list(args: &Runs, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(since).transpose()?;
    let project = process::open(&[], log_format)?;
    let wanted = Wanted { since, failed: args.failed, limit: args.limit };
    let limit = args.limit as usize;
    if !args.all {
        let mut found = runs::of_project(&project, &wanted)?;
        say_if_more(args, found.len());
        found.truncate(limit);
        return terminal::show(&RunList::Project(found), args.json);
    }
    let (mut found, unreadable) = runs::of_all_projects(&project, &wanted)?;
    say_if_more(args, found.len());
    found.truncate(limit);
    for error in unreadable {
        terminal::warn(&format!("a project is left out: {error}"), Some(&error.hint()));
    }
    terminal::show(&RunList::Projects(found), args.json)
}

/// Says that the list goes on, where it does.
fn say_if_more(args: &Runs, found: usize) {
    if found > args.limit as usize && !args.json {
        let more = args.limit.saturating_mul(5).max(1);
        terminal::say(&format!("the newest {}; `backstop runs -n {more}` lists more\n", args.limit));
    }
}

/// What was recorded of a run, of this project or another.
pub(crate) fn events_of(project: &Project, run: RunId) -> Result<Vec<Event>, CliError> {
    Ok(journal_of(project, run)?.load(run)?)
}

/// The journal that a run is in: this project's, that of another one, or a demo's.
pub(crate) fn journal_of(project: &Project, run: RunId) -> Result<Journal, RunsError> {
    runs::journal_of(project, run, demo_states)
}

/// A point in time: a while ago, or a time as it is written.
pub(crate) fn since(given: &str) -> Result<Timestamp, CliError> {
    if let Some(at) = Timestamp::parse_rfc3339(given) {
        return Ok(at);
    }
    let ago = backstop_core::duration::parse(given)?;
    Ok(process::now().before(ago))
}

/// No such run is recorded; the nearest one of this project, where one is near.
pub(crate) fn unknown_run(project: &Project, run: RunId) -> CliError {
    runs::unknown(project, run).into()
}
