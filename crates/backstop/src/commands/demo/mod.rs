//! `backstop demo`: Backstop at work before your eyes, offline, in a folder of the demo's own.
//!
//! `plan.rs` runs a plan in a scratch repository, `command.rs` a command that fails and recovers,
//! `faults.rs` classifies ten failures. `scratch.rs` is the folder. What is shown is what Backstop
//! does, in a process of its own and by the commands that anybody would type; the demo has no
//! second way to do anything.

mod command;
mod faults;
mod plan;
mod scratch;

pub(crate) use scratch::demo_states;

use crate::error::{CliError, DONE, failed};
use clap::{Args, ValueEnum};

/// Watch Backstop at work, offline, in a folder of its own below the temporary folder. The last
/// three of these folders are kept, so that you can look at their runs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to watch
    #[arg(default_value = "plan")]
    pub(crate) what: DemoKind,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoKind {
    /// A plan: phases side by side, a failed test, a retry that knows what failed, a commit for
    /// each phase
    Plan,
    /// A command that fails, is retried and recovers
    Command,
    /// Ten failures, each classified
    Faults,
}

pub(crate) fn run(args: &Demo) -> Result<u8, CliError> {
    match args.what {
        DemoKind::Plan => plan::run(args),
        DemoKind::Command => command::run(args).map(|()| DONE),
        DemoKind::Faults => faults::run(args).map(|()| DONE),
    }
}

/// A program that the demo needs cannot be started.
fn cannot_run(program: &str, error: &std::io::Error) -> CliError {
    failed(format!("cannot run `{program}`: {error}"))
        .hint(format!("install `{program}`, or put it on the PATH"))
}
