//! What a person overrides: `--on REASON=ACTION` and `--confirm RUN`. Both are recorded.

use crate::cli::Exec;
use crate::config::Given;
use crate::context::Context;
use crate::error::CliError;
use backstop_core::{Reason, RunId};
use std::ffi::OsString;

/// What a run waits for that must not be repeated by itself.
pub(super) const CONFIRMATION: &str = "somebody says that it is to be repeated";

/// The flags that change a profile, as keys of the configuration: they are checked and layered as its values are.
pub(super) fn flags(args: &Exec, profile: &str) -> Result<Vec<Given>, CliError> {
    let given = |flag: &str, key: String, value: String| Given { flag: flag.to_owned(), key, value };
    let mut all: Vec<Given> = Vec::new();
    if let Some(attempts) = args.attempts {
        all.push(given("--attempts", format!("profile.{profile}.attempts"), attempts.to_string()));
    }
    for typed in &args.on {
        let (reason, action) = typed.split_once('=').ok_or_else(|| CliError::On { given: typed.clone() })?;
        // A reason is a code; with anything else in it, it would be another key.
        let reason: Reason = reason.trim().parse()?;
        all.push(given("--on", format!("profile.{profile}.on.{reason}"), action.to_owned()));
    }
    Ok(all)
}

/// What a person overrides, as it was typed.
pub(super) fn typed(args: &Exec) -> Vec<String> {
    let confirmed = args.confirm.iter().map(|run| format!("--confirm {run}"));
    confirmed.chain(args.on.iter().map(|on| format!("--on {on}"))).collect()
}

/// The command to run: the one that was typed, or the one of the run that is confirmed.
pub(super) fn argv(args: &Exec, context: &Context) -> Result<Vec<OsString>, CliError> {
    let Some(given) = &args.confirm else { return Ok(args.command.clone()) };
    let run: RunId = given.parse()?;
    let waiting = match context.existing_journal()? {
        Some(journal) => journal.deferred()?.into_iter().find(|d| d.work.run == run),
        None => None,
    };
    let waiting = waiting.ok_or(CliError::NotWaiting { run })?;
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    if !waiting.runnable {
        return Err(CliError::Masked {
            command: waiting.work.argv.join(" "),
            again: format!("backstop exec --confirm {run} -- COMMAND"),
        });
    }
    Ok(waiting.work.argv.iter().map(OsString::from).collect())
}
