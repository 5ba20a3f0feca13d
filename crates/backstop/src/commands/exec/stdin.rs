//! What our own standard input is, and how a command gets it.

use super::StdinMode;
use crate::error::CliError;
use backstop_exec::{Input, Replay};
use std::fs::File;
use std::io::{IsTerminal, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// How the command gets our standard input.
pub(super) fn input(mode: StdinMode, bytes_max: u64, pty: bool) -> Result<Input, CliError> {
    match mode {
        StdinMode::Null => return Ok(Input::Null),
        StdinMode::Inherit if !pty => return Ok(Input::Inherit),
        StdinMode::Inherit => {}
        StdinMode::Replay => {}
    }
    let stdin = std::io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal && !pty {
        return Ok(Input::Inherit);
    }
    // Closed: there is nothing to pass on.
    let Ok(fd) = stdin.as_fd().try_clone_to_owned() else { return Ok(Input::Null) };
    let mut file = File::from(fd);
    if is_terminal {
        // A command with a terminal of its own: what is typed at ours goes there.
        return Ok(Input::Replay(Replay::forward(file)));
    }
    let Ok(meta) = file.metadata() else { return Ok(Input::Null) };
    if meta.file_type().is_file() && !pty {
        // A file is read again from where it stands now, however large it is.
        let from = file.stream_position().map_err(CliError::output)?;
        return Ok(Input::File { file: Arc::new(file), from });
    }
    if pty || meta.file_type().is_fifo() || meta.file_type().is_socket() {
        return Ok(Input::Replay(Replay::new(file, usize::try_from(bytes_max).unwrap_or(usize::MAX))));
    }
    Ok(Input::Inherit)
}
