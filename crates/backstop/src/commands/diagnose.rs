//! `backstop diagnose`: the machine's state, the progress and the error at the time of a failure.

use super::runs;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::RunId;
use backstop_core::deferred::DeferredId;
use backstop_hook::tasks;
use backstop_report::Diagnosis;
use backstop_runtime::aftermath::deferred;
use backstop_runtime::{Project, machine_state, runs::newest_failed};
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
        None => newest_failed(&project)?,
    };
    let mut now = machine_state::look(&project);
    let journal = project.existing_journal()?;
    now.queue_length = journal.and_then(|journal| journal.deferred_count().ok()).map(u64::from);
    let diagnosis = Diagnosis::from_events(&events, now).ok_or_else(|| runs::unknown_run(&project, run))?;
    terminal::show(&diagnosis, args.json)
}

/// The run that is meant: by its id, by deferred work, by a task. Nothing for the last that failed.
fn run_of(project: &Project, given: &str) -> Result<Option<RunId>, CliError> {
    if given == "last" {
        return Ok(None);
    }
    if let Ok(run) = given.parse::<RunId>() {
        return Ok(Some(run));
    }
    if given.parse::<DeferredId>().is_ok() {
        return Ok(Some(deferred::find(project, given)?.work.run));
    }
    Ok(Some(tasks::run_of(project, given)?))
}
