//! `backstop plan normalise` and `backstop plan new`: plans as documents.

use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::SafeText;
use backstop_plan::document::normalised;
use backstop_plan::start::{PlanFile, read_options, settings_given};
use backstop_plan::writer::write_new_plan;
use backstop_runtime::Project;
use clap::Args;
use std::path::PathBuf;

/// Print a plan of any format in Backstop's own form.
#[derive(Debug, Args)]
pub(crate) struct PlanNormalise {
    /// The plan
    pub(crate) plan: PathBuf,
    /// Format of the plan; it is found by the plan's structure
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// What a phase is: phase or task
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<super::super::run::ByWhat>,
}

/// Have an agent write a plan in Backstop's own form; it is checked before it is kept.
#[derive(Debug, Args)]
pub(crate) struct PlanNew {
    /// What is to be reached
    pub(crate) objective: String,
    /// The agent that writes it
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// File for the plan (default: plan.md); one that is there is not replaced
    #[arg(long, value_name = "FILE", default_value = "plan.md")]
    pub(crate) out: PathBuf,
}

/// Prints a plan in Backstop's own form.
pub(super) fn normalise(project: &Project, args: &PlanNormalise) -> Result<u8, CliError> {
    let options = read_options(args.format.as_deref(), super::super::word(args.by).as_deref())?;
    let found = PlanFile::read(&args.plan, &project.root, &options)?;
    for part in &found.plan.passed_over {
        terminal::warn(&format!("{}:{}: passed over: {}", found.path, part.line, part.text), None);
    }
    for warning in &found.plan.warnings {
        terminal::warn(&format!("{}:{}: {}", found.path, warning.line, warning.text), None);
    }
    terminal::print(&normalised(&found.plan))?;
    Ok(DONE)
}

/// Has an agent write a plan.
pub(super) fn new(args: &PlanNew, format: Option<LogFormat>) -> Result<u8, CliError> {
    let project = process::open(&settings_given([("--agent", args.agent.clone())]), format)?;
    let written = write_new_plan(&project, &args.objective, &args.out, &process::is_on_the_path)?;
    terminal::say(&format!(
        "{}: {} phases, asked {}; look with `backstop run {} --dry-run`\n",
        args.out.display(),
        written.plan.phases.len(),
        if written.asked == 1 { "once" } else { "twice" },
        SafeText::new(args.out.to_string_lossy()).line(200),
    ));
    Ok(DONE)
}
