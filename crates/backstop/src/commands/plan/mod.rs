//! `backstop plan`: runs of plans, looked at and put right.

mod document;
mod verify;
mod watch;

use super::run::{self, Run};
use crate::cli::{Cli, Command};
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{SafeText, shell};
use backstop_plan::present;
use backstop_plan::runs::{FoundRun, PhaseChange, resume_command};
use backstop_plan::start::RunError;
use backstop_plan::view::PhaseFile;
use backstop_report::plan::{phase_details, plan_status, plan_status_json};
use backstop_runtime::Project;
use backstop_work::git::Changed;
use clap::{Args, Subcommand};
use serde_json::json;
use std::ffi::OsString;
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

/// How much of a log is shown.
const LOG_BYTES_MAX: u64 = 64 << 20;

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
    let (at, attempt) = found.attempt(&args.phase, args.attempt)?;
    let phase = found.record.phase(at);
    let file = found.views.attempt_log(&phase.plan.id, attempt);
    let mut text = Vec::new();
    let opened = found.views.read_attempt_log(&phase.plan.id, attempt);
    let opened = opened.map_err(|error| CliError::read(&file, error.into()))?;
    let read = std::io::Read::read_to_end(&mut std::io::Read::take(opened, LOG_BYTES_MAX), &mut text);
    read.map_err(|error| CliError::read(&file, error))?;
    let text = SafeText::from_bytes(&text);
    if args.json {
        terminal::print_json(&json!({
            "schema": 1, "run": found.run, "phase_id": phase.plan.id, "attempt": attempt,
            "file": file.display().to_string(), "text": text.terminal(),
        }))?;
    } else {
        terminal::print(&text.terminal())?;
    }
    Ok(DONE)
}

fn diff(project: &Project, args: &PlanAttempt) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    let saved = found.saved_attempt(project, &args.phase, args.attempt)?;
    if args.json {
        let changed = saved.changed_paths()?;
        let path =
            |changed: &Changed| json!({ "path": changed.path.to_string_lossy(), "how": changed.how.name() });
        terminal::print_json(&json!({
            "schema": 1, "run": found.run, "phase_id": saved.phase, "attempt": saved.attempt,
            "reference": saved.reference, "base": saved.base.to_string(), "commit": saved.commit.to_string(),
            "paths": changed.iter().map(path).collect::<Vec<_>>(),
        }))?;
    } else {
        terminal::print(&SafeText::from_bytes(&saved.diff()?).terminal())?;
    }
    Ok(DONE)
}

/// Sets phases back, or passes them over. Gives the plan's path.
fn change(project: &Project, args: &PlanChange, change: PhaseChange) -> Result<PathBuf, CliError> {
    let found = find(project, &args.which)?;
    let changed = found.change(project, &args.phases, change, args.why.as_deref())?;
    let record = &changed.record;
    let next = resume_command(record);
    if args.json {
        let state = |at: &usize| {
            let phase = record.phase(*at);
            json!({ "phase_id": phase.plan.id, "status": phase.node.status.name(), "skipped": phase.node.skipped })
        };
        let states: Vec<_> = changed.phases.iter().map(state).collect();
        terminal::print_json(&json!({ "schema": 1, "run": found.run, "phases": states, "next": next }))?;
        return Ok(changed.file);
    }
    let names: Vec<String> = changed.phases.iter().map(|at| record.phase(*at).plan.shown.line(40)).collect();
    let what = match change {
        PhaseChange::Skip => "passed over",
        PhaseChange::Accept => {
            terminal::say(&format!("{}: accepted; its gates are run\n", names.join(", ")));
            return Ok(changed.file);
        }
        PhaseChange::Reset | PhaseChange::Retry => "pending again",
    };
    terminal::say(&format!("{}: {what}; go on with `{next}`\n", names.join(", ")));
    if changed.dependents_kept > 0 {
        let kept = changed.dependents_kept;
        terminal::warn(
            &format!(
                "finished phases that wait for what is done again ({kept}) are not done again themselves"
            ),
            Some("`backstop plan reset` sets them back, too"),
        );
    }
    Ok(changed.file)
}

fn retry(project: &Project, args: &PlanRetry, format: Option<LogFormat>) -> Result<u8, CliError> {
    let found = find(project, &args.change.which)?;
    let resume = Some(resume_command(&found.record));
    let plan = change(project, &args.change, PhaseChange::Retry)?;
    if args.no_run {
        return Ok(DONE);
    }
    let words = resume.and_then(|line| shell::words(&line)).unwrap_or_default();
    let run = run_again(&words, &plan, args.change.why.as_deref(), args.change.json)
        .ok_or_else(|| RunError::NothingToResume { plan: plan.display().to_string() })?;
    run::run(&run, format)
}

/// Sets phases back, and continues the run: nobody works on them, their gates decide.
fn accept(project: &Project, args: &PlanChange, format: Option<LogFormat>) -> Result<u8, CliError> {
    let found = find(project, &args.which)?;
    let words = shell::words(&resume_command(&found.record)).unwrap_or_default();
    let plan = change(project, args, PhaseChange::Accept)?;
    let run = run_again(&words, &plan, args.why.as_deref(), args.json)
        .ok_or_else(|| RunError::NothingToResume { plan: plan.display().to_string() })?;
    run::run(&Run { accept: args.phases.clone(), ..run }, format)
}

/// What would be typed to go on with a run, from the words that were recorded.
fn run_again(words: &[String], plan: &Path, why: Option<&str>, json: bool) -> Option<Run> {
    let usual = [OsString::from("backstop"), "run".into(), plan.into()];
    let mut line: Vec<OsString> = match words {
        [program, run, ..] if program == "backstop" && run == "run" => words.iter().map(Into::into).collect(),
        _ => usual.into(),
    };
    line.extend(why.into_iter().flat_map(|why| ["--why".into(), why.into()]));
    if json {
        line.push("--json".into());
    }
    match Cli::read_from(line)?.command {
        Some(Command::Run(run)) => Some(*run),
        _ => None,
    }
}
