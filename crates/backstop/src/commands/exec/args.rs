//! What may be typed for `exec`, and what it asks for.

use super::overrides;
use backstop_config::Given;
use backstop_exec::InputMode;
use backstop_runtime::command::CommandRequest;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::terminal;

/// Run a command and make it dependable, without changing it.
///
/// Its output streams through untouched. A failure is classified and recorded; where another
/// attempt helps, it is made, after a wait that the failure calls for. When it ends, nothing that
/// it started is left running. Exits as the command does; 124 where the clock ended it, 125 where
/// Backstop could not start it, 126 not executable, 127 not found, 128 + n for signal n.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    backstop exec --timeout 10m --idle 2m -- npm ci\n  \
    backstop exec --once -- ./migrate            never repeated unless somebody says so\n  \
    backstop exec --dry-run -- ./deploy.sh       what would be repeated, and why not\n  \
    backstop exec --on unknown=retry -- make     retry what no rule knows, too\n  \
    backstop exec --json -- cargo test           how it ended, as JSON on standard output")]
pub(crate) struct Exec {
    /// The command and its arguments, after `--`
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "confirm")]
    pub(crate) command: Vec<OsString>,
    /// The profile that decides how often and how long apart: command, tool, request, task, phase,
    /// state
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) profile: Option<String>,
    /// How often the command is started at most, the first time included, wherever the profile
    /// allows more than one attempt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: Option<u32>,
    /// Time limit for one attempt, such as 10m; a bare number is seconds
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Time limit for an attempt without output, such as 2m
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle: Option<String>,
    /// Time limit for all attempts together, waits included
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// How long a rate limit is waited for; where it lasts longer, the command is put aside
    /// [default: 60s, 1h on a terminal]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) wait_max: Option<String>,
    /// Do not repeat it by itself: where a repetition would help, the ending names the command that
    /// makes it
    #[arg(long)]
    pub(crate) once: bool,
    /// Repeat the command by itself although it changes something outside the project, such as
    /// `curl -X POST` or `npm publish`
    #[arg(long, conflicts_with = "once", hide_short_help = true)]
    pub(crate) repeatable: bool,
    /// Run nothing: show what would be repeated and what not, and why
    #[arg(long, conflicts_with_all = ["confirm", "cache"])]
    pub(crate) dry_run: bool,
    /// Action for a reason: retry, retry:N, surface, defer or confirm; may be given several times
    #[arg(long = "on", value_name = "REASON=ACTION")]
    pub(crate) on: Vec<String>,
    /// Print nothing of Backstop's own; the exit code stays
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
    /// Classify and record a failure, print nothing, and exit 0
    #[arg(long, hide_short_help = true)]
    pub(crate) quiet_failure: bool,
    /// Run the command once, and explain a failure
    #[arg(long, conflicts_with_all = ["attempts", "on", "once"], hide_short_help = true)]
    pub(crate) classify: bool,
    /// Write the result into this file: JSON, or Markdown if the name ends in .md
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Name of the caller; it is recorded
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) caller: Option<String>,
    /// Id of the session; it is recorded
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) session: Option<String>,
    /// Reason for an override (--on, --confirm); it is recorded
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) why: Option<String>,
    /// Repeat the command of a run that waits for somebody to say so
    #[arg(long, value_name = "RUN", hide_short_help = true)]
    pub(crate) confirm: Option<String>,
    /// Start a proxy for the model requests of the command: `backstop proxy --help`
    #[arg(long)]
    pub(crate) proxy: bool,
    /// Print the result as JSON on standard output; the command's own output goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the output at the end; that of failed attempts only if the last one fails too
    #[arg(long, hide_short_help = true)]
    pub(crate) buffer: bool,
    /// Give it a terminal of its own for input and output, even where ours is none
    #[arg(long, conflicts_with = "no_pty", hide_short_help = true)]
    pub(crate) pty: bool,
    /// Give it pipes even where our output is a terminal: no colours, no pager
    #[arg(long, hide_short_help = true)]
    pub(crate) no_pty: bool,
    /// Where its standard input comes from
    #[arg(long, value_name = "MODE", default_value = "auto", hide_short_help = true)]
    pub(crate) stdin: StdinMode,
    /// Let background processes that the command started run on
    #[arg(long, hide_short_help = true)]
    pub(crate) keep_background: bool,
    /// The provider behind it, such as `anthropic`: its shared rate limit and breaker are asked
    /// first and told afterwards
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Budget to spend: one unit for each attempt, the first included
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
    /// Id of the task, for budgets per task (default: the session)
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) task: Option<String>,
    /// Use a stored result that is not older than this, such as 10m, if no declared input has
    /// changed; for commands that only read
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) cache: Option<String>,
    /// Input files of the command, such as 'src/**'; may be given several times
    #[arg(long = "input", value_name = "GLOB", requires = "cache", hide_short_help = true)]
    pub(crate) inputs: Vec<String>,
    /// Environment variables that the result depends on; may be given several times
    #[arg(long, value_name = "NAME", requires = "cache", hide_short_help = true)]
    pub(crate) cache_env: Vec<String>,
    /// A rule pack of your own; may be given several times
    #[arg(long = "rules", value_name = "FILE", hide_short_help = true)]
    pub(crate) packs: Vec<PathBuf>,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// From ours, as it is; not retried where input that it took cannot be given again
    Auto,
    /// From ours; a pipe is read ahead, stored and given to every attempt
    Replay,
    /// From ours, as it is: a second attempt reads what the first has left
    Inherit,
    /// From nowhere
    Null,
}

impl From<StdinMode> for InputMode {
    fn from(mode: StdinMode) -> Self {
        match mode {
            StdinMode::Auto => Self::Auto,
            StdinMode::Replay => Self::Replay,
            StdinMode::Inherit => Self::Inherit,
            StdinMode::Null => Self::Null,
        }
    }
}

impl Exec {
    /// Whether we say nothing of our own.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet || self.quiet_failure
    }

    /// The flags that are also keys of the configuration.
    pub(super) fn settings(&self) -> Vec<Given> {
        Given::those([
            ("--profile", "exec.profile", self.profile.clone()),
            ("--timeout", "exec.timeout", self.timeout.clone()),
            ("--idle", "exec.idle", self.idle.clone()),
            ("--deadline", "exec.deadline", self.deadline.clone()),
            ("--wait-max", "exec.wait_max", self.wait_max.clone()),
        ])
    }

    /// What is asked for, with this command.
    pub(super) fn request(&self, argv: Vec<OsString>) -> CommandRequest {
        let flags = [
            ("--profile", &self.profile),
            ("--timeout", &self.timeout),
            ("--idle", &self.idle),
            ("--deadline", &self.deadline),
            ("--wait-max", &self.wait_max),
            ("--provider", &self.provider),
            ("--budget", &self.budget),
        ];
        CommandRequest {
            argv,
            once: self.once,
            repeatable: self.repeatable,
            single_attempt: self.classify,
            attempts: self.attempts,
            is_watched: terminal::is_watched(),
            packs: self.packs.clone(),
            task: self.task.clone(),
            session: self.session.clone(),
            caller: self.caller.clone(),
            overrides: overrides::typed(self),
            why: self.why.clone(),
            flags: flags.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?))).collect(),
        }
    }
}
