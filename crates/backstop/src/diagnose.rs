//! `backstop diagnose`: what is known of the moment in which something failed.

use crate::cli::{Diagnose, LogFormat};
use crate::context::Context;
use crate::error::CliError;
use crate::{hook, host, runs, terminal};
use backstop_core::RunId;
use backstop_report::{Diagnosis, to_json};
use backstop_store::DeferredId;

pub(crate) fn run(args: &Diagnose, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let context = Context::new(&[], log_format)?;
    let (run, events) = match meant(&context, &args.id)? {
        Some(run) => (run, runs::events_of(&context, run)?),
        None => runs::newest_failed(&context)?,
    };
    let mut now = host::look(&context);
    let journal = context.existing_journal()?;
    now.queue_length = journal.and_then(|journal| journal.deferred_count().ok()).map(u64::from);
    let diagnosis = Diagnosis::from_events(&events, now).ok_or(CliError::NoRun { run })?;
    terminal::print(&if args.json {
        format!("{}\n", to_json(&diagnosis.json()))
    } else {
        diagnosis.text(terminal::stdout_style())
    })
}

/// The run that is meant: by its id, by deferred work, by a task. Nothing for the last that failed.
fn meant(context: &Context, given: &str) -> Result<Option<RunId>, CliError> {
    if given == "last" {
        return Ok(None);
    }
    if let Ok(run) = given.parse::<RunId>() {
        return Ok(Some(run));
    }
    if let Ok(id) = given.parse::<DeferredId>() {
        let all =
            context.existing_journal()?.map(|journal| journal.deferred()).transpose()?.unwrap_or_default();
        let found = all.into_iter().find(|work| work.id == id);
        return found
            .map(|work| Some(work.work.run))
            .ok_or_else(|| CliError::NoDeferred { given: given.to_owned() });
    }
    hook::run_of_task(context, given).map(Some)
}
