//! What our own output streams are, and what the command's are then.

use super::Exec;
use crate::inherited;
use backstop_exec::{Output, is_same_output};
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Where the command's output goes, and what it is connected to.
pub(super) struct Outputs {
    pub(super) to_stdout: File,
    pub(super) to_stderr: File,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    /// Whether both are one stream, so that their order is kept.
    pub(super) joined: bool,
}

impl Outputs {
    /// What a command of these arguments gets. `apart` keeps the two streams apart whatever they are.
    pub(super) fn new(args: &Exec, apart: bool) -> std::io::Result<Self> {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let ours = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
        // With --json, standard output is for the JSON.
        let to_stdout = ours(if args.json { stderr.as_fd() } else { stdout.as_fd() })?;
        let to_stderr = ours(stderr.as_fd())?;
        let output = |stream: usize, to: &File| -> std::io::Result<Output> {
            if inherited::is_closed(stream) {
                return Ok(Output::Closed);
            }
            // Elsewhere than on Linux, a terminal for output alone cannot be had.
            if cfg!(target_os = "linux") && !args.no_pty && !args.buffer && to.is_terminal() {
                return Ok(Output::Terminal(Arc::new(OwnedFd::from(to.try_clone()?))));
            }
            Ok(Output::Pipe)
        };
        let of_stdout = output(if args.json { 2 } else { 1 }, &to_stdout)?;
        let of_stderr = output(2, &to_stderr)?;
        let is_closed = |output: &Output| matches!(output, Output::Closed);
        let joined = !apart
            && !is_closed(&of_stdout)
            && !is_closed(&of_stderr)
            && is_same_output(&to_stdout, &to_stderr);
        Ok(Self { to_stdout, to_stderr, stdout: of_stdout, stderr: of_stderr, joined })
    }
}
