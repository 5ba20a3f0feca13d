//! `backstop deferred`: work that was put aside.

use super::exec::{self, Exec};
use crate::cli::{Cli, Command};
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::RunId;
use backstop_core::deferred::{Deferred as Work, waits_for_confirmation};
use backstop_report::{DeferredDropped, DeferredList, deferred_offer};
use backstop_runtime::Project;
use backstop_runtime::admission::UNFREEZE;
use backstop_runtime::aftermath::deferred::{self, DeferredError, readiness};
use backstop_tools::CALL_FLAG;
use clap::{Args, Subcommand};

/// List, run or forget deferred work: commands and tasks that wait until their cause is gone.
///
/// Without a command, deferred work is listed.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Deferred {
    #[command(subcommand)]
    pub(crate) action: Option<DeferredAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum DeferredAction {
    /// List deferred work
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run it now, as `exec` does; it is removed from the list if it succeeds
    Run {
        /// Its id, such as `d-1`
        id: String,
        /// Print the result as JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Remove it from the list without running it
    Drop {
        /// Its id, such as `d-1`, or `all`
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Deferred, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        None => list(args.json, log_format).map(|()| DONE),
        Some(DeferredAction::List { json }) => list(*json, log_format).map(|()| DONE),
        Some(DeferredAction::Run { id, json }) => again(id, *json, log_format),
        Some(DeferredAction::Drop { id, json }) => forget(id, *json, log_format).map(|()| DONE),
    }
}

fn list(json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let project = process::open(&[], log_format)?;
    let works = deferred::all(&project)?;
    let ready = readiness(&project, &works);
    let works: Vec<_> = works.into_iter().zip(ready).collect();
    let is_any = !works.is_empty();
    terminal::show(&DeferredList { works, now: process::now() }, json)?;
    if let Some(freeze) = project.frozen().filter(|_| is_any && !json) {
        let what = format!("nothing of it can be run: the project is frozen ({})", freeze.reason);
        terminal::warn(&what, Some(&format!("put it right, then `{UNFREEZE}`")));
    }
    Ok(())
}

/// Offers deferred work that can be run now, except what this run has deferred itself.
pub(crate) fn offer(project: &Project, works: &[Work], except: Option<RunId>) {
    let due = deferred::to_offer(project, works, except);
    if let Some(note) = deferred_offer(&due.iter().collect::<Vec<_>>()) {
        terminal::say(&note);
    }
}

/// The same, by a command that has not opened the journal. It must not fail for it.
pub(crate) fn offer_from_store() {
    let offered = || -> Result<(), CliError> {
        let project = process::open(&[], None)?;
        if project.config.log_format() == LogFormat::Human && project.process.parent.is_none() {
            offer(&project, &deferred::all(&project)?, None);
        }
        Ok(())
    };
    let _ = offered();
}

/// What was put aside, as `exec` understands it.
pub(crate) fn parse(flags: &[String], command: &[String]) -> Result<Exec, CliError> {
    let words = ["backstop", "exec"].into_iter().map(str::to_owned).chain(flags.iter().cloned());
    let words = words.chain(["--".to_owned()]).chain(command.iter().cloned());
    match Cli::read_from(words) {
        Some(Cli { command: Some(Command::Exec(args)), .. }) => Ok(*args),
        _ => Err(DeferredError::None { given: command.join(" ") }.into()),
    }
}

/// Runs it in the folder in which it was put aside, as `exec` would.
fn again(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let project = process::open(&[], log_format)?;
    // It is looked up after it is held: it may be done by then.
    let _hold = deferred::hold(&project, given)?;
    let work = deferred::find(&project, given)?;
    let (flags, command) = work.words();
    if work.work.is_task {
        return Err(DeferredError::Task { task: command.join(" ") }.into());
    }
    let waits = waits_for_confirmation(&work.work.argv);
    let is_call = work.work.argv.first().is_some_and(|flag| flag == CALL_FLAG);
    if !work.runnable {
        let again = match waits {
            Some(run) if is_call => format!("backstop call --confirm {run} '{{…}}'"),
            Some(run) => format!("backstop exec --confirm {run} -- COMMAND"),
            None => "backstop exec -- COMMAND".to_owned(),
        };
        return Err(DeferredError::Masked { command: command.to_vec(), again }.into());
    }
    std::env::set_current_dir(&work.work.folder).map_err(|error| CliError::read(&work.work.folder, error))?;
    if let (true, Some(run)) = (is_call, waits) {
        return super::call::confirm(run, json, log_format);
    }
    let mut args = parse(flags, command)?;
    args.json = json;
    if args.confirm.is_some() {
        // Running it is saying that it is to be repeated.
        args.command = Vec::new();
        args.why.get_or_insert_with(|| format!("deferred run {given}"));
    }
    let code = exec::run(&args, log_format)?;
    if code == DONE && args.confirm.is_none() {
        project.journal()?.drop_deferred(work.id)?;
    }
    Ok(code)
}

fn forget(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let project = process::open(&[], log_format)?;
    let works = match given {
        "all" => deferred::all(&project)?,
        given => vec![deferred::find(&project, given)?],
    };
    for work in &works {
        project.journal()?.drop_deferred(work.id)?;
    }
    terminal::show(&DeferredDropped(works.iter().map(|work| work.id).collect()), json)
}
