//! `backstop init --service`: a timer that goes on with interrupted runs, and out again to the
//! byte.

use super::init::{Init, folders};
use super::init_mcp::{records, tell_changes, write};
use crate::error::{CliError, failed};
use crate::process;
use backstop_install::{ServiceManager, TextChange, service_files};
use backstop_report::service_last;

pub(super) fn run(args: &Init) -> Result<(), CliError> {
    let folders = folders()?;
    let home =
        folders.home.clone().ok_or_else(|| failed("there is no home folder to write to").hint("set HOME"))?;
    let records = records()?;
    let manager = ServiceManager::here();
    let program = std::env::current_exe().map_err(|error| {
        failed(format!("our own program cannot be found: {error}")).hint("call it by its full path")
    })?;
    // A timer has none of the surroundings of a shell: agents are found as they are found here.
    let path = std::env::var("PATH").unwrap_or_default();
    let mut environment = vec![("PATH", path.as_str())];
    // A folder of state that only this shell names would not be found by the timer.
    let is_named = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let named = process::state_root(Some(&home))
        .filter(|_| is_named("BACKSTOP_STATE_DIR") || is_named("XDG_STATE_HOME"))
        .map(|state| std::path::absolute(&state).unwrap_or(state).to_string_lossy().into_owned());
    environment.extend(named.as_deref().map(|state| ("BACKSTOP_STATE_DIR", state)));
    let config = folders.config.clone().unwrap_or_else(|| home.join(".config"));
    let mut changes = Vec::new();
    for (file, text) in service_files(manager, &home, &config, &program, &environment) {
        let base = if file.starts_with(&home) { &home } else { &config };
        changes.extend(match args.remove {
            true => TextChange::undo(base, &file, &records)?,
            false => TextChange::create(base, &file, &text)?,
        });
    }
    if !args.dry_run {
        write(&changes, &records)?;
    }
    let (start, stop) = (manager.enable(&home), manager.disable(&home));
    let last = service_last(!changes.is_empty(), args.dry_run, args.remove, &start, &stop);
    tell_changes(args, &home, &changes, &last)
}
