//! `backstop demo`: Backstop at work before your eyes, offline, in a folder of the demo's own.
//!
//! `plan.rs` runs a plan in a scratch repository, `command.rs` a command that fails and recovers, `faults.rs`
//! classifies ten failures. `scratch.rs` is the folder. What is shown is what Backstop does, in a process of its own
//! and by the commands that anybody would type; the demo has no second way to do anything.

mod command;
mod faults;
mod plan;
mod scratch;

use crate::cli::{Demo, DemoKind};
use crate::error::{CliError, DONE};

pub(crate) fn run(args: &Demo) -> Result<u8, CliError> {
    match args.what {
        DemoKind::Plan => plan::run(args),
        DemoKind::Command => command::run(args).map(|()| DONE),
        DemoKind::Faults => faults::run(args).map(|()| DONE),
    }
}
