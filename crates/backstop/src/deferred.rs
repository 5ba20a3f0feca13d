//! `backstop deferred`: work that was put aside.

use crate::cli::{Cli, Command, Deferred, DeferredAction, LogFormat};
use crate::context::Context;
use crate::error::{CliError, DONE};
use crate::{exec, terminal};
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_store::{Deferred as Work, DeferredId};
use clap::Parser;
use serde_json::{Value, json};
use std::ffi::OsString;

pub(crate) fn run(args: &Deferred, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        DeferredAction::List { json } => list(*json, log_format).map(|()| DONE),
        DeferredAction::Run { id, json } => again(id, *json, log_format),
        DeferredAction::Drop { id, json } => forget(id, *json, log_format).map(|()| DONE),
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
                SafeText::new(work.work.argv.join(" ")).line(60),
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
        "id": work.id.to_string(), "run": work.work.run, "argv": work.work.argv, "folder": work.work.folder,
        "reason": work.work.reason, "until": work.work.until, "runnable": work.runnable, "count": work.count,
        "first_at": work.first_at, "last_at": work.last_at,
    })
}

/// Runs it in the folder in which it was put aside, as `exec` would.
fn again(given: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let context = Context::new(&[], log_format)?;
    let work = find(&context, given)?;
    if !work.runnable {
        let again = "backstop exec -- COMMAND".to_owned();
        return Err(CliError::Masked { command: work.work.argv.join(" "), again });
    }
    std::env::set_current_dir(&work.work.folder)
        .map_err(|error| CliError::Read { file: work.work.folder.clone().into(), error })?;
    let mut words: Vec<OsString> = ["backstop", "exec"].map(OsString::from).to_vec();
    if json {
        words.push("--json".into());
    }
    words.push("--".into());
    words.extend(work.work.argv.iter().map(OsString::from));
    let Ok(Cli { command: Some(Command::Exec(args)), .. }) = Cli::try_parse_from(words) else {
        return Err(CliError::NoDeferred { given: given.to_owned() });
    };
    let argv = args.command.clone();
    let code = exec::go(&args, &context, &argv)?;
    if code == DONE {
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
