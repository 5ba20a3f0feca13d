//! `backstop deferred`: work that was put aside.

use crate::cli::{Cli, Command, Deferred, DeferredAction, Exec, LogFormat};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use crate::{exec, freeze, host, terminal};
use backstop_core::{RunId, SafeText};
use backstop_hook::on_error::UNFROZEN;
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_runtime::machine_state as diagnostics;
use backstop_store::{Deferred as Work, DeferredId};
use clap::Parser;
use serde_json::{Value, json};
use std::collections::HashMap;

/// How many services are asked whether they answer.
const ASKED_MAX: usize = 4;

pub(crate) fn run(args: &Deferred, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        None => list(false, log_format).map(|()| DONE),
        Some(DeferredAction::List { json }) => list(*json, log_format).map(|()| DONE),
        Some(DeferredAction::Run { id, json }) => again(id, *json, log_format),
        Some(DeferredAction::Drop { id, json }) => forget(id, *json, log_format).map(|()| DONE),
    }
}

fn all(context: &Context) -> Result<Vec<Work>, CliError> {
    Ok(match context.existing_journal()? {
        Some(journal) => journal.deferred()?,
        None => Vec::new(),
    })
}

fn find(context: &Context, given: &str) -> Result<Work, CliError> {
    let id: DeferredId = given.parse()?;
    let none = || CliError::NoDeferred { given: given.to_owned() };
    all(context)?.into_iter().find(|work| work.id == id).ok_or_else(none)
}

fn list(json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let context = Context::new(&[], log_format)?;
    let works = all(&context)?;
    let ready = readiness(&context, &works);
    if json {
        let rows: Vec<Value> = works.iter().zip(&ready).map(|(work, ready)| as_json(work, *ready)).collect();
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "deferred": rows }))
        ));
    }
    if works.is_empty() {
        return terminal::print("nothing is put aside in this project\n");
    }
    let rows: Vec<Vec<String>> = works
        .iter()
        .zip(&ready)
        .map(|(work, ready)| {
            vec![
                work.id.to_string(),
                work.work.reason.to_string(),
                work.work.until.line(60),
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
    if let Some(freeze) = freeze::frozen(&context) {
        let what = format!("nothing of it can be run: the project is frozen ({})", freeze.reason);
        terminal::warn(&what, Some(&format!("put it right, then `{}`", freeze::UNFREEZE)));
    }
    Ok(())
}

/// What it is, in one line.
fn shown(work: &Work) -> String {
    let words = SafeText::new(words(work).1.join(" "));
    if work.work.is_task { format!("task {}", words.line(55)) } else { words.line(60) }
}

/// Whether what each waits for has come: the host has room again, the service answers. Nothing where that cannot be found out.
/// Only this machine is asked.
fn readiness(context: &Context, works: &[Work]) -> Vec<Option<bool>> {
    if works.is_empty() {
        return Vec::new();
    }
    let short_of = host::short_of(context);
    let is_frozen = freeze::frozen(context).is_some();
    let mut asked: HashMap<String, Option<bool>> = HashMap::new();
    let mut ready = |work: &Work| {
        let resources = work.work.reason.waits_for_host();
        if is_frozen {
            return Some(false);
        }
        if !resources.is_empty() {
            return Some(diagnostics::has_passed(resources, &short_of));
        }
        if work.work.until.raw() == UNFROZEN {
            return Some(true);
        }
        let address = work.work.address.as_deref()?;
        // Many may wait for the same one. Those that are not asked take nobody's place.
        match asked.get(address) {
            Some(known) => *known,
            None if asked.values().flatten().count() >= ASKED_MAX => None,
            None => *asked.entry(address.to_owned()).or_insert_with(|| diagnostics::answers(address)),
        }
    };
    works.iter().map(&mut ready).collect()
}

/// Offers what was put aside and can be done again now, except what this run has put aside itself.
pub(crate) fn offer(context: &Context, works: &[Work], except: Option<RunId>) {
    let works: Vec<Work> = works.iter().filter(|work| Some(work.work.run) != except).cloned().collect();
    let ready = readiness(context, &works);
    let due: Vec<&Work> =
        works.iter().zip(&ready).filter(|(_, ready)| **ready == Some(true)).map(|(work, _)| work).collect();
    let Some(first) = due.first() else { return };
    let what = match due.len() {
        1 => format!(
            "{} waited until {}, and now it can be done: {}",
            first.id,
            first.work.until.line(60),
            shown(first)
        ),
        n => format!("{n} deferred can be done now; the first: {}", shown(first)),
    };
    let next = match due.len() {
        1 if first.work.is_task => "backstop deferred list".to_owned(),
        1 => format!("backstop deferred run {}", first.id),
        _ => "backstop deferred list".to_owned(),
    };
    terminal::say(&format!("note: {what}; `{next}`\n"));
}

/// The same, by a command that has not opened the journal. It must not fail for it.
pub(crate) fn offer_from_store() {
    let offered = || -> Result<(), CliError> {
        let context = Context::new(&[], None)?;
        if context.log_format == LogFormat::Human && context::outer().0.is_none() {
            offer(&context, &all(&context)?, None);
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

/// The flags and the command of what was put aside.
pub(crate) fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&[], words),
    }
}

/// The same; the id of a task is one word, whatever it is.
fn words(work: &Work) -> (&[String], &[String]) {
    if work.work.is_task { (&[], &work.work.argv) } else { split(&work.work.argv) }
}

/// The run whose confirmation it waits for, if it does.
pub(crate) fn waits_for(words: &[String]) -> Option<&str> {
    let (flags, _) = split(words);
    let at = flags.iter().position(|flag| flag == "--confirm")?;
    flags.get(at + 1).map(String::as_str)
}

/// What was put aside, as `exec` understands it.
pub(crate) fn parse(flags: &[String], command: &[String]) -> Result<Exec, CliError> {
    let words = ["backstop", "exec"].into_iter().map(str::to_owned).chain(flags.iter().cloned());
    let words = words.chain(["--".to_owned()]).chain(command.iter().cloned());
    match Cli::try_parse_from(words) {
        Ok(Cli { command: Some(Command::Exec(args)), .. }) => Ok(*args),
        _ => Err(CliError::NoDeferred { given: command.join(" ") }),
    }
}

/// Runs it in the folder in which it was put aside, as `exec` would.
fn again(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let context = Context::new(&[], log_format)?;
    let work = find(&context, given)?;
    let (flags, command) = words(&work);
    if work.work.is_task {
        return Err(CliError::IsTask { task: command.join(" ") });
    }
    if !work.runnable {
        let again = match waits_for(&work.work.argv) {
            Some(run) => format!("backstop exec --confirm {run} -- COMMAND"),
            None => "backstop exec -- COMMAND".to_owned(),
        };
        return Err(CliError::Masked { command: command.join(" "), again });
    }
    std::env::set_current_dir(&work.work.folder)
        .map_err(|error| CliError::Read { file: work.work.folder.clone().into(), error })?;
    let mut args = parse(flags, command)?;
    args.json = json;
    if args.confirm.is_some() {
        // Running it is saying that it is to be repeated.
        args.command = Vec::new();
        args.why.get_or_insert_with(|| format!("deferred run {given}"));
    }
    let code = exec::run(&args, log_format)?;
    if code == DONE && args.confirm.is_none() {
        context.journal()?.drop_deferred(work.id)?;
    }
    Ok(code)
}

fn forget(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let context = Context::new(&[], log_format)?;
    let works = if given == "all" { all(&context)? } else { vec![find(&context, given)?] };
    for work in &works {
        context.journal()?.drop_deferred(work.id)?;
    }
    let ids: Vec<String> = works.iter().map(|work| work.id.to_string()).collect();
    terminal::print(&if json {
        format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "dropped": ids })))
    } else if ids.is_empty() {
        "nothing is put aside in this project\n".to_owned()
    } else {
        format!("forgotten: {}\n", ids.join(", "))
    })
}
