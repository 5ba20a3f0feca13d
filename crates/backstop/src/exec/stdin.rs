//! What our own standard input is, and how a command gets it.

use crate::cli::StdinMode;
use crate::error::CliError;
use backstop_exec::{Input, Replay};
use std::fs::File;
use std::io::{IsTerminal, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// How the command gets our standard input.
pub(super) fn input(mode: StdinMode, bytes_max: u64) -> Result<Input, CliError> {
    match mode {
        StdinMode::Null => return Ok(Input::Null),
        StdinMode::Inherit => return Ok(Input::Inherit),
        StdinMode::Replay => {}
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(Input::Inherit);
    }
    // Closed: there is nothing to pass on.
    let Ok(fd) = stdin.as_fd().try_clone_to_owned() else { return Ok(Input::Null) };
    let mut file = File::from(fd);
    let Ok(meta) = file.metadata() else { return Ok(Input::Null) };
    if meta.file_type().is_file() {
        // A file is read again from where it stands now, however large it is.
        let from = file.stream_position().map_err(CliError::Output)?;
        return Ok(Input::File { file: Arc::new(file), from });
    }
    if meta.file_type().is_fifo() || meta.file_type().is_socket() {
        return Ok(Input::Replay(Replay::new(file, usize::try_from(bytes_max).unwrap_or(usize::MAX))));
    }
    Ok(Input::Inherit)
}
