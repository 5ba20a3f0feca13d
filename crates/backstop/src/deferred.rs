//! `backstop deferred`: work that was put aside.

use crate::cli::{Cli, Command, Deferred, DeferredAction, Exec, LogFormat};
use crate::context::Context;
use crate::error::{CliError, DONE};
use crate::{exec, terminal};
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_store::{Deferred as Work, DeferredId};
use clap::Parser;
use serde_json::{Value, json};

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
    if json {
        let rows: Vec<Value> = works.iter().map(as_json).collect();
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
        .map(|work| {
            vec![
                work.id.to_string(),
                work.work.reason.to_string(),
                work.work.until.line(60),
                work.count.to_string(),
                work.work.run.to_string(),
                SafeText::new(split(&work.work.argv).1.join(" ")).line(60),
            ]
        })
        .collect();
    let text = table(&["ID", "REASON", "UNTIL", "TIMES", "RUN", "COMMAND"], &rows);
    terminal::print(&format!(
        "{text}\n`backstop deferred run ID` runs one now, `backstop deferred drop ID` forgets it\n"
    ))
}

fn as_json(work: &Work) -> Value {
    json!({
        "id": work.id.to_string(), "run": work.work.run, "flags": split(&work.work.argv).0,
        "argv": split(&work.work.argv).1, "folder": work.work.folder,
        "reason": work.work.reason, "until": work.work.until, "runnable": work.runnable, "count": work.count,
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
    let (flags, command) = split(&work.work.argv);
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
