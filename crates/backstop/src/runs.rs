//! `backstop runs`, and the story of one run.

use crate::cli::{Explain, LogFormat, Runs};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{reference, terminal};
use backstop_core::{Event, EventKind, Outcome, RunId, Timestamp};
use backstop_report::{JSON_SCHEMA, RunRow, RunStory, to_json};
use backstop_store::{RunFilter, RunState, RunSummary};
use serde_json::{Value, json};
use std::time::Duration;

/// Lists the runs of this project.
pub(crate) fn list(args: &Runs, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let since = args.since.as_deref().map(since).transpose()?;
    let context = Context::new(&[], log_format)?;
    let filter =
        RunFilter { limit: if args.failed { 10_000 } else { args.limit }, since, ..RunFilter::default() };
    let mut runs = match context.existing_journal()? {
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

/// A run's story, or a reason's page.
pub(crate) fn explain(args: &Explain, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let is_run = args.what.strip_prefix("r-").is_some_and(|rest| !rest.is_empty());
    if !is_run && args.what != "last" {
        return reference::explain(args);
    }
    let context = Context::new(&[], log_format)?;
    let run: RunId = if args.what == "last" {
        let newest = match context.existing_journal()? {
            Some(journal) => journal.runs(&RunFilter { limit: 1, ..RunFilter::default() })?.pop(),
            None => None,
        };
        newest.ok_or(CliError::NoRuns)?.id
    } else {
        args.what.parse()?
    };
    let events = events_of(&context, run)?;
    let story = RunStory::from_events(&events).ok_or(CliError::NoRun { run })?;
    terminal::print(&if args.json {
        format!("{}\n", to_json(&backstop_report::story_json(&story)))
    } else if args.markdown {
        backstop_report::story_markdown(&story)
    } else {
        backstop_report::story(&story, terminal::stdout_style())
    })
}

/// What was recorded of a run. One of another project is found too: its id is what people copy from a terminal.
pub(crate) fn events_of(context: &Context, run: RunId) -> Result<Vec<Event>, CliError> {
    let journal = match context.existing_journal()? {
        Some(journal) if journal.run(run)?.is_some() => Some(journal),
        _ => context.folder()?.find_run(run)?,
    };
    match journal {
        Some(journal) => Ok(journal.load(run)?),
        None => Err(CliError::NoRun { run }),
    }
}

/// The newest run of this project in which something failed, and what was recorded of it.
pub(crate) fn newest_failed(context: &Context) -> Result<(RunId, Vec<Event>), CliError> {
    let journal = context.existing_journal()?.ok_or(CliError::NoRuns)?;
    let classified = |event: &Event| matches!(event.kind, EventKind::ErrorClassified { .. });
    for run in journal.runs(&RunFilter { limit: 1000, ..RunFilter::default() })? {
        let events = journal.load(run.id)?;
        if events.iter().any(classified) {
            return Ok((run.id, events));
        }
    }
    Err(CliError::NothingFailed)
}

/// A point in time: a while ago, or a time as it is written.
pub(crate) fn since(given: &str) -> Result<Timestamp, CliError> {
    if let Some(at) = Timestamp::parse_rfc3339(given) {
        return Ok(at);
    }
    let ago = backstop_core::duration::parse(given)?;
    Ok(context::now().before(ago))
}
