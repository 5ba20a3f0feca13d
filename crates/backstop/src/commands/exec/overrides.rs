//! What a person overrides: `--on REASON=ACTION` and `--confirm RUN`. Both are recorded.

use super::Exec;
use crate::commands::deferred;
use crate::error::{CliError, usage};
use backstop_config::Given;
use backstop_core::{Reason, RunId};
use backstop_runtime::Project;
use backstop_runtime::aftermath::deferred::{split, waits_for_confirmation};
use backstop_store::Deferred;
use backstop_tools::CALL_FLAG;
use std::ffi::OsString;

/// What a run waits for that must not be repeated by itself.
pub(super) const CONFIRMATION: &str = "somebody says that it is to be repeated";

/// The flags that change a profile, as keys of the configuration: they are checked and layered as
/// its values are.
pub(super) fn flags(args: &Exec, profile: &str) -> Result<Vec<Given>, CliError> {
    let given = |flag: &str, key: String, value: String| Given { flag: flag.to_owned(), key, value };
    let mut all: Vec<Given> = Vec::new();
    if let Some(attempts) = args.attempts {
        all.push(given("--attempts", format!("profile.{profile}.attempts"), attempts.to_string()));
    }
    for typed in &args.on {
        let (reason, action) = typed.split_once('=').ok_or_else(|| not_an_override(typed))?;
        if action.trim() == "halt" {
            return Err(not_an_override(typed));
        }
        // A reason is a code; with anything else in it, it would be another key.
        let reason: Reason = reason.trim().parse()?;
        all.push(given("--on", format!("profile.{profile}.on.{reason}"), action.to_owned()));
    }
    Ok(all)
}

/// What a person overrides, as it was typed.
pub(super) fn typed(args: &Exec) -> Vec<String> {
    let confirmed = args.confirm.iter().map(|run| format!("--confirm {run}"));
    let repeatable = args.repeatable.then(|| "--repeatable".to_owned());
    confirmed.chain(repeatable).chain(args.on.iter().map(|on| format!("--on {on}"))).collect()
}

/// The command to run: the one that was typed, or the one of the run that is confirmed. A
/// confirmation is used up by it.
pub(super) fn argv(args: &mut Exec, project: &Project) -> Result<Vec<OsString>, CliError> {
    let Some(given) = &args.confirm else { return Ok(args.command.clone()) };
    let run: RunId = given.parse()?;
    let journal = project.existing_journal()?.ok_or_else(|| not_waiting(run))?;
    let is_call = |work: &Deferred| work.work.argv.first().is_some_and(|flag| flag == CALL_FLAG);
    let waits = |work: &&Deferred| {
        work.work.run == run && waits_for_confirmation(&work.work.argv).is_some() && !is_call(work)
    };
    let all = journal.deferred()?;
    let waiting = all.iter().find(waits).ok_or_else(|| not_waiting(run))?;
    let (flags, command) = split(&waiting.work.argv);
    if !waiting.runnable && args.command.is_empty() {
        let again = format!("backstop exec --confirm {run} -- COMMAND");
        return Err(deferred::masked(command, &again));
    }
    // A confirmation is for one command, not for another.
    let typed: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let typed = project.redactor.redact_arguments(&typed);
    if !typed.is_empty() && typed != command {
        return Err(usage(format!(
            "{run} waits for a confirmation of another command: {}",
            command.join(" ")
        ))
        .hint(format!("`backstop exec --confirm {run}` runs the one that waits")));
    }
    let kept = deferred::parse(flags, command)?;
    // Whoever takes it first has it.
    if !journal.drop_deferred(waiting.id)? {
        return Err(not_waiting(run));
    }
    // One confirmation is one repetition, under the limits that it had.
    args.once = true;
    for (ours, theirs) in [
        (&mut args.profile, kept.profile),
        (&mut args.timeout, kept.timeout),
        (&mut args.idle, kept.idle),
        (&mut args.deadline, kept.deadline),
        (&mut args.provider, kept.provider),
        (&mut args.budget, kept.budget),
    ] {
        if ours.is_none() {
            *ours = theirs;
        }
    }
    if args.command.is_empty() {
        args.command = kept.command;
    }
    Ok(args.command.clone())
}

fn not_an_override(typed: &str) -> CliError {
    usage(format!("`{typed}` is no override: write it as REASON=ACTION"))
        .hint("for example: `--on unknown=retry`; `backstop reasons` lists the reasons")
}

fn not_waiting(run: RunId) -> CliError {
    usage(format!("{run} does not wait for a confirmation in this project"))
        .hint(format!("`backstop explain {run}` tells how it ended; `backstop deferred list` what waits"))
}
