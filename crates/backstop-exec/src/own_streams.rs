//! Our own standard streams, and what a command gets in their place: the same, a pipe or a
//! terminal.

use crate::{Input, Output, Replay, Watched, is_same_output};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IsTerminal, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

/// How a command gets our standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    /// As it is; not retried where input that it took cannot be given again.
    Auto,
    /// A pipe is read ahead, stored and given to every attempt.
    Replay,
    /// As it is: a second attempt reads what the first has left.
    Inherit,
    /// It gets none.
    Null,
}

/// What is asked of our output streams.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputRequest {
    /// Standard output is for somebody else: the command's goes to standard error.
    pub all_to_stderr: bool,
    /// No terminal, even where ours is one.
    pub no_terminal: bool,
    /// The two streams stay apart, whatever they are.
    pub apart: bool,
    /// The command is an interactive shell: our terminal is its terminal.
    pub is_shell: bool,
}

/// Shells that ask for commands where they are given none.
const SHELLS: [&str; 8] = ["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// Whether a command is a shell that somebody types at: no script, no `-c`, and our standard input
/// is a terminal.
pub fn is_interactive_shell(argv: &[OsString]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_option = |word: &OsString| {
        let word = word.to_string_lossy();
        let is_short = word.len() > 1 && word.starts_with('-') && !word.starts_with("--");
        (is_short && !word.contains('c')) || (word.starts_with("--") && !word.starts_with("--command"))
    };
    SHELLS.contains(&name) && words.iter().all(is_option) && std::io::stdin().is_terminal()
}

/// Where a command's output goes, and what it is connected to.
#[derive(Debug)]
pub struct OwnOutputs {
    /// Where its output goes.
    pub to_stdout: File,
    /// Where its errors go.
    pub to_stderr: File,
    /// What its standard output is.
    pub stdout: Output,
    /// What its standard error is.
    pub stderr: Output,
    /// Whether both are one stream, so that their order is kept.
    pub joined: bool,
}

impl OwnOutputs {
    /// What a command gets of our output streams. `is_closed` says of 0, 1 and 2 whether the stream
    /// was closed when this process was started.
    pub fn new(asked: OutputRequest, is_closed: &dyn Fn(usize) -> bool) -> std::io::Result<Self> {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let ours = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
        let to_stdout = ours(if asked.all_to_stderr { stderr.as_fd() } else { stdout.as_fd() })?;
        let to_stderr = ours(stderr.as_fd())?;
        let output = |stream: usize, to: &File| -> std::io::Result<Output> {
            if is_closed(stream) {
                return Ok(Output::Closed);
            }
            // Elsewhere than on Linux, a terminal for output alone cannot be had.
            if cfg!(target_os = "linux") && !asked.no_terminal && to.is_terminal() {
                let real = Arc::new(OwnedFd::from(to.try_clone()?));
                return Ok(if asked.is_shell { Output::Own(real) } else { Output::Terminal(real) });
            }
            Ok(Output::Pipe)
        };
        let of_stdout = output(if asked.all_to_stderr { 2 } else { 1 }, &to_stdout)?;
        let of_stderr = output(2, &to_stderr)?;
        let is_closed = |output: &Output| matches!(output, Output::Closed);
        let is_seen = |output: &Output| !matches!(output, Output::Own(_));
        let joined = !asked.apart
            && is_seen(&of_stdout)
            && is_seen(&of_stderr)
            && !is_closed(&of_stdout)
            && !is_closed(&of_stderr)
            && is_same_output(&to_stdout, &to_stderr);
        Ok(Self { to_stdout, to_stderr, stdout: of_stdout, stderr: of_stderr, joined })
    }
}

/// How a command gets our standard input, of which at most `bytes_max` are read ahead. One with a
/// terminal of its own (`pty`) is fed by us.
pub fn own_input(mode: InputMode, bytes_max: u64, pty: bool, is_closed: bool) -> std::io::Result<Input> {
    match mode {
        InputMode::Null => return Ok(Input::Null),
        _ if is_closed => return Ok(Input::Closed),
        InputMode::Inherit if !pty => return Ok(Input::Inherit),
        InputMode::Inherit | InputMode::Auto | InputMode::Replay => {}
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
        let from = file.stream_position()?;
        return Ok(Input::File { file: Arc::new(file), from });
    }
    // A terminal of its own is fed by us; else input is read ahead only where that is asked for.
    let reads_ahead = pty || (mode == InputMode::Replay && !is_terminal);
    if reads_ahead && (pty || meta.file_type().is_fifo() || meta.file_type().is_socket()) {
        return Ok(Input::Replay(Replay::new(file, usize::try_from(bytes_max).unwrap_or(usize::MAX))));
    }
    Ok(Watched::new(file).map_or(Input::Inherit, Input::Watched))
}
