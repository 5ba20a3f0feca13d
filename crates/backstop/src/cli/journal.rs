//! What may be typed about what was recorded.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// List the runs of this project, newest first.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// How many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only those that did not end well
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only those that began within this time, such as 2h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, follow and filter what was recorded in this project.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Go on and print what is recorded from now on
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Only those of this last while, such as 2h, or since a time, such as 2026-01-05T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only classified errors of this reason
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only those of this kind, such as `decision.made`
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// At most so many, the newest ones
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u32,
    /// Print classified errors as JSON lines: `type`, `timestamp`, `sessionId`, `payload`
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Append to this file instead of printing; implies --jsonl
    #[arg(long, value_name = "FILE")]
    pub(crate) tail_to: Option<PathBuf>,
    /// Print every event as a line of JSON
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
}

/// Work that was put aside until its cause is gone.
#[derive(Debug, Args)]
pub(crate) struct Deferred {
    #[command(subcommand)]
    pub(crate) action: Option<DeferredAction>,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum DeferredAction {
    /// List it
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run it now, as `exec` does; it is forgotten when it succeeds
    Run {
        /// Which, such as `d-1`
        id: String,
        /// Print how it ended as JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Forget it
    Drop {
        /// Which, such as `d-1`; or `all`
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What was left of the machine when something failed, how far it had come, and what it was.
#[derive(Debug, Args)]
pub(crate) struct Diagnose {
    /// A run such as `r-7f3a`, a task that was reported, deferred work such as `d-1`, or `last`
    #[arg(value_name = "ID", default_value = "last")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let a frozen project go on: from then on new work may begin.
#[derive(Debug, Args)]
pub(crate) struct Unfreeze {
    /// Why: it is recorded
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) why: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove runs that are old or too many. What an open run needs stays.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// How long runs are kept, such as 30d
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep: Option<String>,
    /// How large the store may be, such as 1GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) max: Option<String>,
    /// Set this project's store aside instead, where it is damaged; nothing is deleted
    #[arg(long, conflicts_with_all = ["keep", "max"])]
    pub(crate) quarantine: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
