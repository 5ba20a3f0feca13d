//! `backstop init --service`: a timer that goes on with interrupted runs, and out again to the
//! byte.

use super::init::{Init, folders};
use super::init_mcp::{records, tell_changes, write};
use crate::error::{CliError, failed};
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
    let config = folders.config.clone().unwrap_or_else(|| home.join(".config"));
    let mut changes = Vec::new();
    for (file, text) in service_files(manager, &home, &config, &program, &path) {
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
