//! `backstop agents`: which agents can work on phases here, and how each would be run.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_plan::agents::agent_list;
use clap::Args;

/// List the agents that can work on phases: installed or not, version, how each is run.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Agents) -> Result<(), CliError> {
    let project = process::open_quietly(&[], None)?;
    terminal::show(&agent_list(&project.config, &process::is_on_the_path), args.json)
}
