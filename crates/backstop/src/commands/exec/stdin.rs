//! What our own standard input is, and how a command gets it.

use super::StdinMode;
use crate::error::CliError;
use crate::inherited;
use backstop_exec::{Input, Replay, Watched};
use std::fs::File;
use std::io::{IsTerminal, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// How the command gets our standard input.
pub(super) fn input(mode: StdinMode, bytes_max: u64, pty: bool) -> Result<Input, CliError> {
    match mode {
        StdinMode::Null => return Ok(Input::Null),
        _ if inherited::is_closed(0) => return Ok(Input::Closed),
        StdinMode::Inherit if !pty => return Ok(Input::Inherit),
        StdinMode::Inherit | StdinMode::Auto | StdinMode::Replay => {}
    }
    let stdin = std::io::stdin();
    let is_terminal = stdin.is_terminal();
    let Ok(fd) = stdin.as_fd().try_clone_to_owned() else { return Ok(Input::Null) };
    let mut file = File::from(fd);
    if is_terminal && pty {
        // A command with a terminal of its own: what is typed at ours goes there.
        return Ok(Input::Replay(Replay::forward(file)));
    }
    let Ok(meta) = file.metadata() else { return Ok(Input::Null) };
    if meta.file_type().is_file() && !pty {
        // A file is read again from where it stands now, however large it is.
        let from = file.stream_position().map_err(CliError::output)?;
        return Ok(Input::File { file: Arc::new(file), from });
    }
    // A terminal of its own is fed by us; else input is read ahead only where that is asked for.
    let reads_ahead = pty || (mode == StdinMode::Replay && !is_terminal);
    if reads_ahead && (pty || meta.file_type().is_fifo() || meta.file_type().is_socket()) {
        return Ok(Input::Replay(Replay::new(file, usize::try_from(bytes_max).unwrap_or(usize::MAX))));
    }
    Ok(Watched::new(file).map_or(Input::Inherit, Input::Watched))
}
