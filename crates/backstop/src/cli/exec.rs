//! What may be typed after `backstop exec`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a command and make it dependable, without changing it.
///
/// Its output streams through untouched. A failure is classified and recorded; where another attempt helps, it is made, after
/// a wait that the failure calls for. When it ends, nothing that it started is left running. Exits as the command does;
/// 124 where the clock ended it, 125 where Backstop could not start it, 126 not executable, 127 not found, 128 + n for signal n.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    backstop exec --timeout 10m --idle 2m -- npm ci\n  \
    backstop exec --once -- ./deploy.sh          never repeated unless somebody says so\n  \
    backstop exec --on unknown=retry -- make     retry what no rule knows, too\n  \
    backstop exec --json -- cargo test           how it ended, as JSON on standard output")]
pub(crate) struct Exec {
    /// The command and its arguments, after `--`
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "confirm")]
    pub(crate) command: Vec<OsString>,
    /// The profile that decides how often and how long apart: command, tool, request, task, phase, state
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// How many attempts there may be, the first included, wherever the profile allows more than one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: Option<u32>,
    /// How long an attempt may run, such as 10m
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// How long an attempt may be silent, such as 2m
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle: Option<String>,
    /// How long all attempts together may take, waits included
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// Do not repeat it by itself: where a repetition would help, the ending names the command that makes it
    #[arg(long)]
    pub(crate) once: bool,
    /// What to do about a reason: retry, retry:N, surface, defer or confirm; may be given several times
    #[arg(long = "on", value_name = "REASON=ACTION")]
    pub(crate) on: Vec<String>,
    /// Say nothing of our own, whatever happens; the exit code stays
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
    /// Classify and record a failure, say nothing of it, and exit 0
    #[arg(long)]
    pub(crate) quiet_failure: bool,
    /// Run it once, and explain a failure
    #[arg(long, conflicts_with_all = ["attempts", "on", "once"])]
    pub(crate) classify: bool,
    /// Write how it ended into this file: JSON, or Markdown where its name ends in .md
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Who calls, for the record
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// The session that this belongs to, for the record
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Why it is overridden (--on, --confirm), for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Repeat the command of a run that waits for somebody to say so
    #[arg(long, value_name = "RUN")]
    pub(crate) confirm: Option<String>,
    /// Print how it ended as JSON on standard output; the command's own output goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Hold the output back until it is over; what failed attempts wrote is not shown unless the last one fails
    #[arg(long)]
    pub(crate) buffer: bool,
    /// Give it a terminal of its own, on which its output and errors are one
    #[arg(long)]
    pub(crate) pty: bool,
    /// Where its standard input comes from
    #[arg(long, value_name = "MODE", default_value = "replay")]
    pub(crate) stdin: StdinMode,
    /// Leave processes running that it started in the background and left behind
    #[arg(long)]
    pub(crate) keep_background: bool,
    /// The provider behind it, such as `anthropic`: its shared rate limit and breaker are asked first and told afterwards
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The budget that it spends: one unit for each attempt, the first included
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
    /// The task that it belongs to, for budgets per task; else the session
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Use a result that is not older than this, such as 10m, where nothing that was declared has changed; for commands that
    /// only read
    #[arg(long, value_name = "DURATION")]
    pub(crate) cache: Option<String>,
    /// Files that the result depends on, such as 'src/**'; may be given several times
    #[arg(long = "input", value_name = "GLOB", requires = "cache")]
    pub(crate) inputs: Vec<String>,
    /// Environment variables that the result depends on; may be given several times
    #[arg(long, value_name = "NAME", requires = "cache")]
    pub(crate) cache_env: Vec<String>,
    /// A rule pack of your own; may be given several times
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) packs: Vec<PathBuf>,
}

impl Exec {
    /// Whether we say nothing of our own.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet || self.quiet_failure
    }
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// From ours; what comes through a pipe is kept and given to every attempt
    Replay,
    /// From ours, as it is: a second attempt reads what the first has left
    Inherit,
    /// From nowhere
    Null,
}
