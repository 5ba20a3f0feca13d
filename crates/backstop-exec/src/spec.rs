//! What is to be run, and within which bounds.

use crate::Input;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The bounds of one attempt.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long it may run.
    pub wall: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
    /// How long it has between being asked to end and being killed.
    pub grace: Duration,
    /// How long its output is waited for after it has ended, where a process that it left holds the pipe open.
    pub drain: Duration,
    /// How much of each stream is kept.
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
    /// The folder to run it in, where it is not ours.
    pub folder: Option<PathBuf>,
    /// Variables to add to its environment.
    pub env: Vec<(String, String)>,
    /// The bounds.
    pub limits: Limits,
    /// Whether it gets a terminal of its own, on which its output and its errors are one.
    pub pty: bool,
    /// Whether processes that it leaves behind are left running when it has ended by itself.
    pub keep_background: bool,
    /// Whether everything that hangs on this process belongs to the command. Where several commands are supervised at
    /// once, orphans are told apart by the variables in `env`.
    pub exclusive: bool,
}

/// Where its output goes and its input comes from.
pub struct Streams {
    /// For its standard output; with a terminal of its own, for everything.
    pub stdout: Box<dyn Write + Send>,
    /// For its standard error.
    pub stderr: Box<dyn Write + Send>,
    /// Its standard input.
    pub input: Input,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("input", &self.input).finish_non_exhaustive()
    }
}
