//! `backstop plan`: runs of plans, looked at and put right.

mod document;
mod verify;
mod watch;

use super::run::{PlanStart, start};
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_plan::present;
use backstop_plan::runs::{Changed, FoundRun, PhaseChange};
use backstop_plan::start::{RunCommand, RunError, RunRequest};
use backstop_plan::view::PhaseFile;
use backstop_report::View;
use backstop_report::plan::{phase_details, plan_status, plan_status_json};
use backstop_runtime::Project;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Show plan runs, and correct them.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) action: PlanAction,
}

/// What to do with a plan's run.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanAction {
    /// Show the state of each phase
    Status(PlanStatus),
    /// Show all that is recorded of a phase: attempts, gates, commits
    Show(PlanShow),
    /// Show the log of an attempt of a phase
    Logs(PlanAttempt),
    /// Show what a phase changed
    Diff(PlanAttempt),
    /// Retry phases, and continue the run
    Retry(PlanRetry),
    /// Take phases as you have finished them by hand: run their gates, mark them complete, and
    /// continue the run
    Accept(PlanChange),
    /// Run the gates of phases on your tree as it is; nothing is recorded
    Verify(verify::PlanVerify),
    /// Follow what an agent says while it works on a phase
    Watch(watch::PlanWatch),
    /// Print a plan of any format in Backstop's own form
    Normalise(document::PlanNormalise),
    /// Have an agent write a plan; it is checked before it is kept
    New(document::PlanNew),
    /// Set phases back to pending; the next run does them again
    Reset(PlanChange),
    /// Skip phases, so that those which depend on them can start
    Skip(PlanChange),
}

/// Which run.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The plan (not needed if only one was run in this project)
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// The run, such as r-7f3a (default: the last one)
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Show where each phase stands.
#[derive(Debug, Args)]
pub(crate) struct PlanStatus {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a phase.
#[derive(Debug, Args)]
pub(crate) struct PlanShow {
    /// The phase, such as 2A
    pub(crate) phase: String,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An attempt of a phase.
#[derive(Debug, Args)]
pub(crate) struct PlanAttempt {
    /// The phase, such as 2A
    pub(crate) phase: String,
    #[command(flatten)]
    pub(crate) which: Which,
    /// The attempt, counted from 1 (default: the last one)
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Set phases to something, and say why.
#[derive(Debug, Args)]
pub(crate) struct PlanChange {
    /// The phases, such as 2A
    #[arg(required = true)]
    pub(crate) phases: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Reason; it is recorded
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Try phases again, and go on with the run.
#[derive(Debug, Args)]
pub(crate) struct PlanRetry {
    #[command(flatten)]
    pub(crate) change: PlanChange,
    /// Only set the phases back; run nothing
    #[arg(long)]
    pub(crate) no_run: bool,
}

/// Carries out `backstop plan …`.
pub(crate) fn run(args: &Plan, format: Option<LogFormat>) -> Result<u8, CliError> {
    if let PlanAction::New(args) = &args.action {
        return document::new(args, format);
    }
    let project = process::open(&[], format)?;
    match &args.action {
        PlanAction::New(_) => Ok(DONE),
        PlanAction::Watch(args) => watch::watch(&project, args),
        PlanAction::Normalise(args) => document::normalise(&project, args),
        PlanAction::Status(args) => status(&project, args),
        PlanAction::Show(args) => show(&project, args),
        PlanAction::Logs(args) => logs(&project, args),
        PlanAction::Diff(args) => diff(&project, args),
        PlanAction::Accept(args) => accept(&project, args, format),
        PlanAction::Verify(args) => verify::verify(&project, args),
        PlanAction::Reset(args) => change(&project, args, PhaseChange::Reset).map(|_| DONE),
        PlanAction::Skip(args) => change(&project, args, PhaseChange::Skip).map(|_| DONE),
        PlanAction::Retry(args) => retry(&project, args, format),
    }
}

fn find(project: &Project, which: &Which) -> Result<FoundRun, CliError> {
    let run = which.run.as_deref().map(str::parse).transpose()?;
    Ok(FoundRun::find(project, run, which.plan.as_deref())?)
}

fn status(project: &Project, args: &PlanStatus) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    let summary = found.journal.run(found.run)?.ok_or(RunError::NoRun { run: found.run })?;
    let running = process::is_alive(&summary.process).then_some(summary.process.pid);
    let status = present::status(&found, running, process::now());
    if args.json {
        terminal::print_json(&plan_status_json(&status))?;
    } else {
        terminal::print(&plan_status(&status, terminal::stdout_width(), terminal::stdout_style()))?;
    }
    Ok(DONE)
}

fn show(project: &Project, args: &PlanShow) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    let at = found.phase(&args.phase)?;
    if args.json {
        terminal::print(&PhaseFile::of(&found.record, at).to_text())?;
        return Ok(DONE);
    }
    let shown = |path: &Path| path.strip_prefix(&project.root).unwrap_or(path).display().to_string();
    if let Some(details) = present::details(&found, at, &shown, process::now()) {
        terminal::print(&phase_details(&details, terminal::stdout_style()))?;
    }
    Ok(DONE)
}

fn logs(project: &Project, args: &PlanAttempt) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    terminal::show(&found.read_log(&args.phase, args.attempt)?, args.json).map(|()| DONE)
}

fn diff(project: &Project, args: &PlanAttempt) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    let saved = found.saved_attempt(project, &args.phase, args.attempt)?;
    terminal::show(&saved.changes(found.run)?, args.json).map(|()| DONE)
}

/// Sets phases back, or passes them over, and says so.
fn change(project: &Project, args: &PlanChange, change: PhaseChange) -> Result<Changed, CliError> {
    let found = find(project, &args.which)?;
    let changed = found.change(project, &args.phases, change, args.why.as_deref())?;
    let view = changed.view(change);
    if args.json {
        terminal::show(&view, true)?;
        return Ok(changed);
    }
    terminal::say(&view.text(terminal::stderr_style()));
    if let Some((what, hint)) = view.warning() {
        terminal::warn(&what, Some(hint));
    }
    Ok(changed)
}

fn retry(project: &Project, args: &PlanRetry, format: Option<LogFormat>) -> Result<u8, CliError> {
    let changed = change(project, &args.change, PhaseChange::Retry)?;
    if args.no_run {
        return Ok(DONE);
    }
    resume(project, &changed, &args.change, Vec::new(), format)
}

/// Sets phases back, and continues the run: nobody works on them, their gates decide.
fn accept(project: &Project, args: &PlanChange, format: Option<LogFormat>) -> Result<u8, CliError> {
    let changed = change(project, args, PhaseChange::Accept)?;
    resume(project, &changed, args, args.phases.clone(), format)
}

/// Continues a run as it was asked for when it was recorded.
fn resume(
    project: &Project,
    changed: &Changed,
    args: &PlanChange,
    accept: Vec<String>,
    format: Option<LogFormat>,
) -> Result<u8, CliError> {
    let command = RunCommand::of(&changed.record)
        .ok_or_else(|| RunError::NothingToResume { plan: changed.file.display().to_string() })?
        .with_file(&changed.file, project);
    let allow_dirty = command.allow_dirty;
    let request = RunRequest { accept, allow_dirty, why: args.why.clone(), ..RunRequest::default() };
    start(PlanStart { command, request, at: None, json: args.json, quiet: false }, format)
}
