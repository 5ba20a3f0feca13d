//! What to run, with which limits and streams.

use crate::Input;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The limits of one attempt.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long the command may run.
    pub wall: Option<Duration>,
    /// How long the command may write nothing.
    pub idle: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long to wait for output after the command has ended, where a process left behind holds
    /// the pipe open.
    pub drain: Duration,
    /// How many bytes of each stream are stored.
    pub kept_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: None,
            idle: None,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(1),
            kept_bytes_max: 4 << 20,
        }
    }
}

/// What one output stream of the command is.
#[derive(Debug, Clone, Default)]
pub enum Output {
    /// A pipe.
    #[default]
    Pipe,
    /// A pseudo-terminal for output alone, with the settings and the size of this terminal.
    /// Settings that the command changes on it are changed on this terminal too.
    Terminal(Arc<OwnedFd>),
    /// A pipe that the caller reads: [`Started::stdout`](crate::Started::stdout) is its end.
    /// Nothing of it is stored here, and writing to it does not count as activity. For standard
    /// output only.
    Caller,
    /// This terminal itself: nothing of what is written is seen here. For an interactive shell,
    /// which has job control only on its controlling terminal.
    Own(Arc<OwnedFd>),
    /// Closed, as ours is.
    Closed,
}

/// A command to run once.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory; `None` for our own.
    pub folder: Option<PathBuf>,
    /// Variables to add to its environment. If Backstop is killed, its processes are recognised by
    /// them.
    pub env: Vec<(OsString, OsString)>,
    /// Variables to remove from its environment.
    pub env_remove: Vec<OsString>,
    /// The limits.
    pub limits: Limits,
    /// Whether the command gets a session and a pseudo-terminal of its own, for input and output.
    /// Its output and its errors are one stream then, and `stdout`, `stderr` and `joined` mean
    /// nothing.
    pub pty: bool,
    /// What its standard output is.
    pub stdout: Output,
    /// What its standard error is.
    pub stderr: Output,
    /// Whether its output and its errors are one stream, `stdout`, so that their order is kept.
    pub joined: bool,
    /// Whether the command stays in our process group, so that the terminal's keys reach it as they
    /// would without us. Its processes are found by descent alone then; only Linux can do that.
    pub shares_group: bool,
    /// The signals that are ignored when the command starts.
    pub ignored_signals: Vec<i32>,
    /// Whether background processes of a command that exited by itself are left running.
    pub keep_background: bool,
    /// Whether its processes are ended when this process is killed. Otherwise they run on, and
    /// [`end_leftover`](crate::end_leftover) ends them.
    pub dies_with_us: bool,
    /// Whether it is known to start no other program. It has no reaper then, which saves a process:
    /// only its process group is ended. If this process is killed, it runs on until it ends by
    /// itself, whatever `dies_with_us` says.
    pub runs_nothing_else: bool,
}

/// Where the command's output goes and its input comes from.
pub struct Streams {
    /// Receives its standard output; where both are one stream, everything. Nothing, where the
    /// caller reads it.
    pub stdout: Box<dyn Write + Send>,
    /// Receives its standard error.
    pub stderr: Box<dyn Write + Send>,
    /// Its standard input.
    pub input: Input,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("input", &self.input).finish_non_exhaustive()
    }
}
