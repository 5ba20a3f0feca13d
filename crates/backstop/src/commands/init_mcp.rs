//! `backstop init --mcp`: moves an agent's MCP servers behind the gateway, and back.
//!
//! What moves where is `backstop_tools::ServerMove`'s; a person is asked here.

use super::init::{Init, folders};
use super::tools::places;
use crate::error::{CliError, failed};
use crate::{process, prompt, terminal};
use backstop_config::user_file_path;
use backstop_install::{Records, TextChange, records_in};
use backstop_report::{FileChanges, server_move_last, servers_can_move, servers_moved};
use backstop_tools::ServerMove;
use std::path::Path;

/// The servers that are meant: of the project, or with `--user` the user's own.
fn servers(args: &Init) -> Result<ServerMove, CliError> {
    if !args.user {
        return Ok(ServerMove::of_project(&places()?));
    }
    let no_home = || failed("there is no home folder to write to").hint("set HOME");
    let settings = user_file_path(&process::surroundings()?).ok_or_else(no_home)?;
    Ok(ServerMove::of_user(places()?, settings, folders()?.home.ok_or_else(no_home)?))
}

pub(super) fn run(args: &Init) -> Result<(), CliError> {
    let records = records()?;
    let moving = servers(args)?;
    // All are looked at before any is written.
    let changes = if args.remove { moving.undo(&records)? } else { moving.plan()? };
    if !args.dry_run {
        write(&changes, &records)?;
    }
    let last = server_move_last(!changes.is_empty(), args.dry_run, args.remove, args.user);
    tell_changes(args, moving.shown_from(), &changes, last)
}

/// Where what was there before is kept.
pub(super) fn records() -> Result<Records, CliError> {
    let state = process::state_root(folders()?.home.as_deref()).ok_or_else(|| {
        failed("there is no folder to keep what was there before").hint("set BACKSTOP_STATE_DIR")
    })?;
    Ok(Records::new(Some(records_in(&state))))
}

/// Writes changes.
pub(super) fn write(changes: &[TextChange], records: &Records) -> Result<(), CliError> {
    process::user_folder();
    changes.iter().try_for_each(|change| change.apply(records)).map_err(CliError::from)
}

/// Offers to move the servers that `init` finds: on a terminal they are moved if somebody says so,
/// elsewhere the command that does it is named. What cannot be moved is not offered.
pub(super) fn offer(args: &Init) -> Result<(), CliError> {
    let moving = servers(args)?;
    let Ok(changes) = moving.plan() else { return Ok(()) };
    if changes.is_empty() {
        return Ok(());
    }
    terminal::say(&servers_can_move(moving.count(), args.user));
    if args.dry_run || !prompt::can_ask() {
        return Ok(());
    }
    tell_changes(args, moving.shown_from(), &changes, "nothing of this is written yet")?;
    if prompt::confirm("Move them? `backstop init --mcp --remove` undoes it to the byte. [y/N] ") {
        write(&changes, &records()?)?;
        terminal::say(&format!("{}\n", servers_moved(args.user)));
    }
    Ok(())
}

/// Shows changes of files as diffs, and what to know about them last.
pub(super) fn tell_changes(
    args: &Init,
    folder: &Path,
    changes: &[TextChange],
    last: &str,
) -> Result<(), CliError> {
    let redactor = terminal::redactor();
    let changes = changes.iter().map(|change| change.row(folder, &redactor)).collect();
    terminal::show(&FileChanges { changes, is_written: !args.dry_run, last: last.to_owned() }, args.json)
}
