//! `backstop deferred`: work that was put aside.

use super::exec::{self, Exec};
use crate::cli::{Cli, Command};
use crate::error::{CliError, DONE, ErrorKind, failed, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Name, RunId, SafeText, shell};
use backstop_report::{JSON_SCHEMA, near_time, table, to_json, until_words};
use backstop_runtime::Project;
use backstop_runtime::admission::UNFREEZE;
use backstop_runtime::aftermath::deferred::{readiness, waits_for_confirmation, words};
use backstop_store::{Deferred as Work, DeferredId, Held, Hold};
use backstop_tools::CALL_FLAG;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

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

fn all(project: &Project) -> Result<Vec<Work>, CliError> {
    Ok(match project.existing_journal()? {
        Some(journal) => journal.deferred()?,
        None => Vec::new(),
    })
}

fn find(project: &Project, given: &str) -> Result<Work, CliError> {
    let id: DeferredId = given.parse()?;
    all(project)?.into_iter().find(|work| work.id == id).ok_or_else(|| no_deferred(given))
}

/// There is no such work.
pub(crate) fn no_deferred(given: &str) -> CliError {
    usage(format!("there is no deferred work {given} in this project"))
        .hint("`backstop deferred list` lists what there is")
}

/// What was put aside cannot be run as it was stored.
pub(crate) fn masked(command: &[String], again: &str) -> CliError {
    failed(format!("the command holds a secret, which was not stored: {}", command.join(" ")))
        .hint(format!("type it again, with the secret: `{again}`"))
}

fn list(json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let project = process::open(&[], log_format)?;
    let works = all(&project)?;
    let ready = readiness(&project, &works);
    if json {
        let rows: Vec<Value> = works.iter().zip(&ready).map(|(work, ready)| as_json(work, *ready)).collect();
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "deferred": rows }))
        ));
    }
    if works.is_empty() {
        return terminal::print("there is no deferred work in this project\n");
    }
    let now = process::now();
    let rows: Vec<Vec<String>> = works
        .iter()
        .zip(&ready)
        .map(|(work, ready)| {
            vec![
                work.id.to_string(),
                work.work.reason.to_string(),
                SafeText::new(until_words(work.work.until.raw(), |at| near_time(at, now))).line(60),
                ready.map_or("-", |ready| if ready { "yes" } else { "no" }).to_owned(),
                work.count.to_string(),
                work.work.run.to_string(),
                shown(work),
            ]
        })
        .collect();
    let text = table(&["ID", "REASON", "UNTIL", "READY", "TIMES", "RUN", "COMMAND"], &rows);
    terminal::print(&format!(
        "{text}\n`backstop deferred run ID` runs one now, `backstop deferred drop ID` forgets it\n"
    ))?;
    if let Some(freeze) = project.frozen() {
        let what = format!("nothing of it can be run: the project is frozen ({})", freeze.reason);
        terminal::warn(&what, Some(&format!("put it right, then `{UNFREEZE}`")));
    }
    Ok(())
}

/// What it is, in one line.
fn shown(work: &Work) -> String {
    let words = words(work).1;
    match work.work.is_task {
        true => format!("task {}", SafeText::new(words.join(" ")).line(55)),
        false => SafeText::new(shell::line(words.iter().map(String::as_str))).line(60),
    }
}

/// Offers deferred work that can be run now, except what this run has deferred itself. Each is
/// offered once: a note that comes with every command is soon not read any more.
pub(crate) fn offer(project: &Project, works: &[Work], except: Option<RunId>) {
    let is_new = |work: &&Work| !work.offered && Some(work.work.run) != except;
    let works: Vec<Work> = works.iter().filter(is_new).cloned().collect();
    let ready = readiness(project, &works);
    let due = works.iter().zip(&ready).filter(|(_, ready)| **ready == Some(true)).map(|(work, _)| work);
    let mut due: Vec<&Work> = due.collect();
    let ids: Vec<DeferredId> = due.iter().map(|work| work.id).collect();
    if ids.is_empty() {
        return;
    }
    // What cannot be remembered is not offered: it would be offered again and again.
    let Ok(marked) = project.journal().map(|journal| journal.mark_offered(&ids)) else { return };
    let marked = marked.unwrap_or_default();
    due.retain(|work| marked.contains(&work.id));
    let Some(first) = due.first() else { return };
    let note = match due.len() {
        1 => {
            let next = match first.work.is_task {
                true => "backstop deferred list".to_owned(),
                false => format!("backstop deferred run {}", first.id),
            };
            format!("deferred work can be run now: {} ({}); `{next}`", first.id, shown(first))
        }
        n => format!("{n} pieces of deferred work can be run now; `backstop deferred list` shows them"),
    };
    terminal::say(&format!("note: {note}\n"));
}

/// The same, by a command that has not opened the journal. It must not fail for it.
pub(crate) fn offer_from_store() {
    let offered = || -> Result<(), CliError> {
        let project = process::open(&[], None)?;
        if project.config.log_format() == LogFormat::Human && project.process.parent.is_none() {
            offer(&project, &all(&project)?, None);
        }
        Ok(())
    };
    let _ = offered();
}

fn as_json(work: &Work, ready: Option<bool>) -> Value {
    json!({
        "id": work.id.to_string(), "run": work.work.run, "flags": words(work).0,
        "argv": words(work).1, "folder": work.work.folder,
        "reason": work.work.reason, "until": work.work.until, "runnable": work.runnable, "ready": ready,
        "is_task": work.work.is_task, "count": work.count,
        "first_at": work.first_at, "last_at": work.last_at,
    })
}

/// What was put aside, as `exec` understands it.
pub(crate) fn parse(flags: &[String], command: &[String]) -> Result<Exec, CliError> {
    let words = ["backstop", "exec"].into_iter().map(str::to_owned).chain(flags.iter().cloned());
    let words = words.chain(["--".to_owned()]).chain(command.iter().cloned());
    match Cli::read_from(words) {
        Some(Cli { command: Some(Command::Exec(args)), .. }) => Ok(*args),
        _ => Err(no_deferred(&command.join(" "))),
    }
}

/// Runs it in the folder in which it was put aside, as `exec` would.
fn again(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let project = process::open(&[], log_format)?;
    // Of many who run it at once, one does. It is looked up after that: it may be done by then.
    let _hold = hold(&project, given.parse()?)?;
    let work = find(&project, given)?;
    let (flags, command) = words(&work);
    if work.work.is_task {
        return Err(is_task(&command.join(" ")));
    }
    let call = work.work.argv.first().filter(|flag| *flag == CALL_FLAG);
    if let (Some(_), Some(run), true) = (call, waits_for_confirmation(&work.work.argv), work.runnable) {
        std::env::set_current_dir(&work.work.folder)
            .map_err(|error| CliError::read(&work.work.folder, error))?;
        return super::call::confirm(run, json, log_format);
    }
    if !work.runnable {
        let again = match waits_for_confirmation(&work.work.argv) {
            Some(run) if call.is_some() => format!("backstop call --confirm {run} '{{…}}'"),
            Some(run) => format!("backstop exec --confirm {run} -- COMMAND"),
            None => "backstop exec -- COMMAND".to_owned(),
        };
        return Err(masked(command, &again));
    }
    std::env::set_current_dir(&work.work.folder).map_err(|error| CliError::read(&work.work.folder, error))?;
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

/// Takes the right to run deferred work, until it is dropped.
fn hold(project: &Project, id: DeferredId) -> Result<Hold, CliError> {
    let name: Name = format!("deferred-{id}").parse().map_err(|_| no_deferred(&id.to_string()))?;
    match project.folder()?.hold(&project.root, &name, process::id())? {
        Held::Ours(hold) => Ok(hold),
        Held::By(holder) => {
            let by = holder.map_or_else(
                || "another process".to_owned(),
                |holder| format!("process {} since {}", holder.pid, near_time(holder.since, process::now())),
            );
            let mut error = failed(format!("{id} is being run by {by}"));
            error.kind = ErrorKind::Deferred;
            Err(error.hint("`backstop deferred list` shows whether it is still there when that has ended"))
        }
    }
}

fn is_task(task: &str) -> CliError {
    let end_of_flags = if task.starts_with('-') { "-- " } else { "" };
    let quoted = shell::quoted(task);
    failed(format!("`{task}` is a task that somebody else works on: only who reported it can go on"))
        .hint(format!("once it is done: `backstop hook resolved {end_of_flags}{quoted}`"))
}

fn forget(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let project = process::open(&[], log_format)?;
    let works = if given == "all" { all(&project)? } else { vec![find(&project, given)?] };
    for work in &works {
        project.journal()?.drop_deferred(work.id)?;
    }
    let ids: Vec<String> = works.iter().map(|work| work.id.to_string()).collect();
    terminal::print(&if json {
        format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "dropped": ids })))
    } else if ids.is_empty() {
        "there is no deferred work in this project\n".to_owned()
    } else {
        format!("forgotten: {}\n", ids.join(", "))
    })
}
