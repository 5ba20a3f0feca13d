//! What to run, with which limits and streams.

use crate::Input;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
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

/// A command to run once.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory; `None` for our own.
    pub folder: Option<PathBuf>,
    /// Variables to add to its environment.
    pub env: Vec<(String, String)>,
    /// The limits.
    pub limits: Limits,
    /// Whether the command gets a pseudo-terminal. Its output and its errors are one stream then.
    pub pty: bool,
    /// Whether background processes of a command that exited by itself are left running.
    pub keep_background: bool,
    /// Whether every orphan that this process adopts belongs to the command. Where several commands
    /// are supervised at once, orphans are told apart by the variables in `env`.
    pub exclusive: bool,
}

/// Where the command's output goes and its input comes from.
pub struct Streams {
    /// Receives its standard output; with a pseudo-terminal, everything.
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
