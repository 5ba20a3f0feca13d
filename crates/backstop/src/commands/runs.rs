//! `backstop runs`, and finding one of them.

use super::demo::demo_states;
use super::explain::{self, Explain};
use crate::error::{CliError, failed, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::nearest::nearest;
use backstop_core::{Event, EventKind, Outcome, RunId, SafeText, Timestamp};
use backstop_report::{JSON_SCHEMA, RunRow, to_json};
use backstop_runtime::Project;
use backstop_store::{Journal, RunFilter, RunState, RunSummary, StateFolder};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Among how many runs the nearest id is looked for.
const NEAREST_AMONG_MAX: u32 = 1000;

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
            match is_run(what) {
                true => explain::run(show, log_format),
                false => Err(what.parse::<RunId>().err().map_or_else(no_runs, CliError::from)),
            }
        }
        None => list(args, log_format),
    }
}

fn is_run(what: &str) -> bool {
    what == "last" || what.parse::<RunId>().is_ok()
}

fn list(args: &Runs, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(since).transpose()?;
    let project = process::open(&[], log_format)?;
    let filter = RunFilter {
        limit: if args.failed { 10_000 } else { args.limit.saturating_add(1) },
        since,
        ..RunFilter::default()
    };
    if args.all {
        return list_all(args, &project, &filter);
    }
    let runs = match project.existing_journal()? {
        Some(journal) => journal.runs(&filter)?,
        None => Vec::new(),
    };
    let runs: Vec<RunSummary> = runs.into_iter().filter(|run| wanted(args, run)).collect();
    say_if_more(args, runs.len());
    let runs = &runs[..runs.len().min(args.limit as usize)];
    if args.json {
        let rows: Vec<Value> = runs.iter().map(summary_json).collect();
        return terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "runs": rows }))));
    }
    let rows: Vec<RunRow> = runs.iter().map(row).collect();
    terminal::print(&backstop_report::runs_table(&rows, terminal::stdout_style()))
}

/// Lists the runs of every project of the state folder, newest first.
fn list_all(args: &Runs, project: &Project, filter: &RunFilter) -> Result<(), CliError> {
    let (journals, unreadable) = project.folder()?.journals()?;
    let mut runs: Vec<(SafeText, RunSummary)> = Vec::new();
    let mut skipped: Vec<CliError> = unreadable.into_iter().map(CliError::from).collect();
    for journal in journals {
        let found = journal.project_path().and_then(|path| Ok((path, journal.runs(filter)?)));
        match found {
            Ok((path, found)) => {
                let path = SafeText::new(path.unwrap_or_default().to_string_lossy());
                let found = found.into_iter().filter(|run| wanted(args, run));
                runs.extend(found.map(|run| (path.clone(), run)));
            }
            Err(error) => skipped.push(error.into()),
        }
    }
    runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.started_at));
    say_if_more(args, runs.len());
    runs.truncate(args.limit as usize);
    for error in skipped {
        terminal::warn(&format!("a project is left out: {error}"), error.first_hint());
    }
    if args.json {
        let with_project = |(path, run): &(SafeText, RunSummary)| {
            let mut row = summary_json(run);
            row["project"] = json!(path);
            row
        };
        let rows: Vec<Value> = runs.iter().map(with_project).collect();
        return terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "runs": rows }))));
    }
    let rows: Vec<(SafeText, RunRow)> = runs.iter().map(|(path, run)| (path.clone(), row(run))).collect();
    terminal::print(&backstop_report::runs_table_of_projects(&rows, terminal::stdout_style()))
}

/// Says that the list goes on, where it does.
fn say_if_more(args: &Runs, found: usize) {
    if found > args.limit as usize && !args.json {
        let more = args.limit.saturating_mul(5).max(1);
        terminal::say(&format!("the newest {}; `backstop runs -n {more}` lists more\n", args.limit));
    }
}

/// Surfaces on which only an override was noted: nothing was run.
const OVERRIDES: [&str; 3] = ["guard", "budget", "unfreeze"];
/// Among how many entries the newest run is looked for.
const NEWEST_AMONG_MAX: u32 = 200;

/// The newest run in which something was run.
pub(super) fn newest_run(journal: &Journal) -> Result<Option<RunSummary>, CliError> {
    let filter = RunFilter { limit: NEWEST_AMONG_MAX, ..RunFilter::default() };
    let ran = |run: &RunSummary| !OVERRIDES.contains(&run.surface.as_str());
    Ok(journal.runs(&filter)?.into_iter().find(ran))
}

fn wanted(args: &Runs, run: &RunSummary) -> bool {
    !args.failed || !matches!(run.outcome, Some(Outcome::Done) | None)
}

fn row(run: &RunSummary) -> RunRow {
    RunRow {
        run: run.id,
        started: run.started_at,
        operation: run.operation.clone().unwrap_or_default(),
        outcome: run.outcome,
        halted: run.state == RunState::Halted,
        reason: run.reason.filter(|_| run.outcome != Some(Outcome::Done)),
        attempts: run.attempts,
        duration: run.duration_ms.map(Duration::from_millis),
    }
}

fn summary_json(run: &RunSummary) -> Value {
    json!({
        "run": run.id, "state": run.state.name(), "surface": run.surface, "session": run.session, "caller": run.caller,
        "parent": run.parent, "operation": run.operation, "folder": run.folder, "profile": run.profile,
        "started_at": run.started_at, "ended_at": run.ended_at, "outcome": run.outcome, "reason": run.reason,
        "attempts": run.attempts, "exit": run.exit, "duration_ms": run.duration_ms, "next": run.next, "events": run.events,
    })
}

/// What was recorded of a run. One of another project is found too: its id is what people copy from
/// a terminal.
pub(crate) fn events_of(project: &Project, run: RunId) -> Result<Vec<Event>, CliError> {
    Ok(journal_of(project, run)?.load(run)?)
}

/// The journal that a run is in: this project's, or that of another one.
pub(crate) fn journal_of(project: &Project, run: RunId) -> Result<Journal, CliError> {
    match project.existing_journal()? {
        Some(journal) if journal.run(run)?.is_some() => Ok(journal.clone()),
        _ => match project.folder()?.find_run(run)? {
            Some(journal) => Ok(journal),
            None => demo_run(run).ok_or_else(|| unknown_run(project, run)),
        },
    }
}

/// The journal of a run that a demo has made.
fn demo_run(run: RunId) -> Option<Journal> {
    demo_states().iter().find_map(|state| {
        let folder = StateFolder::open(state, Arc::new(process::now), terminal::redactor()).ok()?;
        folder.find_run(run).ok()?
    })
}

/// The newest run of this project in which something failed, and what was recorded of it.
pub(crate) fn newest_failed(project: &Project) -> Result<(RunId, Vec<Event>), CliError> {
    let journal = project.existing_journal()?.ok_or_else(no_runs)?;
    let classified = |event: &Event| matches!(event.kind, EventKind::ErrorClassified { .. });
    for run in journal.runs(&RunFilter { limit: 1000, ..RunFilter::default() })? {
        let events = journal.load(run.id)?;
        if events.iter().any(classified) {
            return Ok((run.id, events));
        }
    }
    Err(failed("nothing has failed in this project yet").hint("`backstop runs` lists what was done"))
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
    let error = usage(format!("no run {run} is recorded; it may have been removed because of its age"));
    let filter = RunFilter { limit: NEAREST_AMONG_MAX, ..RunFilter::default() };
    let journal = project.existing_journal().ok().flatten();
    let runs = journal.and_then(|journal| journal.runs(&filter).ok()).unwrap_or_default();
    let ids: Vec<String> = runs.iter().map(|run| run.id.to_string()).collect();
    let near = nearest(&run.to_string(), ids.iter().map(String::as_str));
    match near {
        Some(near) => {
            error.hint(format!("did you mean {near}? `backstop runs` lists the runs of this project"))
        }
        None => error.hint("`backstop runs` lists the runs of this project"),
    }
}

/// There are no runs.
pub(crate) fn no_runs() -> CliError {
    usage("nothing has been run in this project yet")
        .hint("`backstop exec -- COMMAND` runs a command, `backstop run PLAN.md` a plan")
}
