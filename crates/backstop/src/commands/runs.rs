//! `backstop runs`, and finding one of them.

use crate::error::{CliError, failed, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Event, EventKind, Outcome, RunId, Timestamp};
use backstop_report::{JSON_SCHEMA, RunRow, to_json};
use backstop_runtime::Project;
use backstop_store::{RunFilter, RunState, RunSummary};
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;

/// List the runs of this project, newest first.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// How many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only those that did not end well
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only those that began within this time, such as 2h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the runs of this project.
pub(crate) fn list(args: &Runs, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(since).transpose()?;
    let project = process::open(&[], log_format)?;
    let filter =
        RunFilter { limit: if args.failed { 10_000 } else { args.limit }, since, ..RunFilter::default() };
    let mut runs = match project.existing_journal()? {
        Some(journal) => journal.runs(&filter)?,
        None => Vec::new(),
    };
    if args.failed {
        runs.retain(|run| !matches!(run.outcome, Some(Outcome::Done) | None));
        runs.truncate(args.limit as usize);
    }
    if args.json {
        let rows: Vec<Value> = runs.iter().map(summary_json).collect();
        return terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "runs": rows }))));
    }
    let rows: Vec<RunRow> = runs
        .into_iter()
        .map(|run| RunRow {
            run: run.id,
            started: run.started_at,
            operation: run.operation.unwrap_or_default(),
            outcome: run.outcome,
            halted: run.state == RunState::Halted,
            reason: run.reason.filter(|_| run.outcome != Some(Outcome::Done)),
            attempts: run.attempts,
            duration: run.duration_ms.map(Duration::from_millis),
        })
        .collect();
    terminal::print(&backstop_report::runs_table(&rows, terminal::stdout_style()))
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
    match project.existing_journal()? {
        Some(journal) if journal.run(run)?.is_some() => Ok(journal.load(run)?),
        _ => match project.folder()?.find_run(run)? {
            Some(journal) => Ok(journal.load(run)?),
            None => Err(no_run(run)),
        },
    }
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

/// There is no such run.
pub(crate) fn no_run(run: RunId) -> CliError {
    usage(format!("no run {run} is recorded")).hint("`backstop runs` lists the runs of this project")
}

/// There are no runs.
pub(crate) fn no_runs() -> CliError {
    usage("no runs are recorded in this project")
        .hint("`backstop exec -- COMMAND` or `backstop run PLAN.md` makes one")
}
