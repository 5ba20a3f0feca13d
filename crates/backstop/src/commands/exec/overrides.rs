//! What a person overrides: `--on REASON=ACTION` and `--confirm RUN`. Both are recorded.

use super::Exec;
use crate::commands::deferred::parse;
use crate::error::CliError;
use backstop_core::RunId;
use backstop_runtime::Project;
use backstop_runtime::aftermath::deferred::{self, DeferredError};
use backstop_tools::CALL_FLAG;
use std::ffi::OsString;

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
    let is_call = |words: &[String]| words.first().is_some_and(|flag| flag == CALL_FLAG);
    let waiting = deferred::waiting_for(project, run, is_call)?;
    let (flags, command) = waiting.words();
    let command = command.to_vec();
    if !waiting.runnable && args.command.is_empty() {
        let again = format!("backstop exec --confirm {run} -- COMMAND");
        return Err(DeferredError::Masked { command, again }.into());
    }
    // A confirmation is for one command, not for another.
    let typed: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let typed = project.redactor.redact_arguments(&typed);
    if !typed.is_empty() && typed != command {
        return Err(DeferredError::OtherCommand { run, command }.into());
    }
    let kept = parse(flags, &command)?;
    deferred::take(project, &waiting)?;
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
