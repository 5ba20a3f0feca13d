//! `backstop plan verify`: the gates of phases, run on the tree as it is.

use crate::error::{CliError, DONE, FAILED};
use crate::terminal;
use backstop_core::SafeText;
use backstop_plan::start::verify_gates;
use backstop_runtime::Project;
use clap::Args;
use std::path::PathBuf;

/// Run the gates of phases on your tree as it is.
#[derive(Debug, Args)]
pub(crate) struct PlanVerify {
    /// The phases, such as 2A (default: all)
    pub(crate) phases: Vec<String>,
    /// The plan (not needed if only one was run in this project)
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the gates, and says what each found. Exits 1 where one fails.
pub(super) fn verify(project: &Project, args: &PlanVerify) -> Result<u8, CliError> {
    let mut started = |gate: &str| terminal::say(&format!("checking: {}\n", SafeText::new(gate).line(80)));
    let verified = verify_gates(project, args.plan.as_deref(), &args.phases, &mut started)?;
    terminal::show(&verified, args.json)?;
    Ok(if verified.passed() { DONE } else { FAILED })
}
