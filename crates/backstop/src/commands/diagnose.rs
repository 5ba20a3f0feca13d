//! `backstop diagnose`: the machine's state, the progress and the error at the time of a failure.

use super::deferred::no_deferred;
use super::runs;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::RunId;
use backstop_hook::tasks;
use backstop_report::{Diagnosis, to_json};
use backstop_runtime::{Project, machine_state};
use backstop_store::DeferredId;
use clap::Args;

/// Show the machine's state at the time of a failure, with the error and how far the work had come.
#[derive(Debug, Args)]
pub(crate) struct Diagnose {
    /// A run such as `r-7f3a`, the id of a reported task, deferred work such as `d-1`, or `last`
    #[arg(value_name = "ID", default_value = "last")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Diagnose, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let project = process::open(&[], log_format)?;
    let (run, events) = match run_of(&project, &args.id)? {
        Some(run) => (run, runs::events_of(&project, run)?),
        None => runs::newest_failed(&project)?,
    };
    let mut now = machine_state::look(&project);
    let journal = project.existing_journal()?;
    now.queue_length = journal.and_then(|journal| journal.deferred_count().ok()).map(u64::from);
    let diagnosis = Diagnosis::from_events(&events, now).ok_or_else(|| runs::unknown_run(&project, run))?;
    terminal::print(&if args.json {
        format!("{}\n", to_json(&diagnosis.json()))
    } else {
        diagnosis.text(terminal::stdout_style())
    })
}

/// The run that is meant: by its id, by deferred work, by a task. Nothing for the last that failed.
fn run_of(project: &Project, given: &str) -> Result<Option<RunId>, CliError> {
    if given == "last" {
        return Ok(None);
    }
    if let Ok(run) = given.parse::<RunId>() {
        return Ok(Some(run));
    }
    if let Ok(id) = given.parse::<DeferredId>() {
        let all = project
            .existing_journal()?
            .map(backstop_store::Journal::deferred)
            .transpose()?
            .unwrap_or_default();
        let found = all.into_iter().find(|work| work.id == id);
        return found.map(|work| Some(work.work.run)).ok_or_else(|| no_deferred(given));
    }
    Ok(Some(tasks::run_of(project, given)?))
}
