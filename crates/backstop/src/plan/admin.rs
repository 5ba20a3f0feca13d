//! `backstop plan`: runs of plans, looked at and put right.

use super::begin::last_run;
use super::{person, read};
use crate::cli::{self, LogFormat, PlanAction, Which};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use crate::terminal;
use backstop_core::{EventKind, RunId, SafeText, shell};
use backstop_plan::document::PhaseId;
use backstop_plan::observers::mark;
use backstop_plan::present::rows;
use backstop_plan::record::{PhaseProgress, RunRecord};
use backstop_plan::start_events;
use backstop_plan::view::ViewFolder;
use backstop_report::plan::{PlanStatus, Progress, RunState, plan_status, plan_status_json};
use backstop_report::to_json;
use backstop_runtime::host::NodeStatus;
use backstop_store::{Held, Journal, RunFilter, RunJournal};
use backstop_work::git::{Repo, Sha, attempt_ref};
use serde_json::json;
use std::path::PathBuf;

/// How much of a log is shown.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// A run of a plan.
struct Found {
    journal: Journal,
    run: RunId,
    record: RunRecord,
    views: ViewFolder,
}

/// Carries out `backstop plan …`.
pub(crate) fn run(args: &cli::Plan, format: Option<LogFormat>) -> Result<u8, CliError> {
    let context = Context::new(&[], format)?;
    match &args.action {
        PlanAction::Status(args) => status(&context, args),
        PlanAction::Logs(args) => logs(&context, args),
        PlanAction::Diff(args) => diff(&context, args),
        PlanAction::Reset(args) => change(&context, args, "reset").map(|_| DONE),
        PlanAction::Skip(args) => change(&context, args, "skip").map(|_| DONE),
        PlanAction::Retry(args) => retry(&context, args, format),
    }
}

fn find(context: &Context, which: &Which) -> Result<Found, CliError> {
    let journal = context.existing_journal()?.ok_or(CliError::NoPlanRuns)?;
    let run = match (&which.run, &which.plan) {
        (Some(run), _) => run.parse()?,
        (None, Some(plan)) => {
            let file = plan.canonicalize().unwrap_or_else(|_| plan.clone());
            let path = read::shown(&file, &context.project);
            last_run(&journal, &path)?.ok_or(CliError::NoRunOf { plan: path })?
        }
        (None, None) => {
            let filter = RunFilter { surface: Some("run".to_owned()), limit: 1000, ..RunFilter::default() };
            let runs = journal.runs(&filter)?;
            let mut plans: Vec<SafeText> = runs.iter().filter_map(|run| run.operation.clone()).collect();
            plans.sort();
            plans.dedup();
            if plans.len() > 1 {
                return Err(CliError::WhichPlan { plans });
            }
            runs.first().map(|run| run.id).ok_or(CliError::NoPlanRuns)?
        }
    };
    let record = RunRecord::of(&journal.load(run)?);
    if record.is_empty() {
        return Err(CliError::NoRun { run });
    }
    let views = ViewFolder::new(&context.project, &read::view_name(record.path().raw()));
    Ok(Found { journal, run, record, views })
}

fn phase_of(record: &RunRecord, given: &str) -> Result<usize, CliError> {
    let known = || record.phases().map(|phase| phase.plan.shown.line(40)).collect::<Vec<_>>();
    let id: PhaseId =
        given.parse().map_err(|_| CliError::NoPhase { given: given.to_owned(), known: known() })?;
    let at = record.progress.number(id.key().as_str());
    at.ok_or_else(|| CliError::NoPhase { given: given.to_owned(), known: known() })
}

fn status(context: &Context, args: &cli::PlanStatus) -> Result<u8, CliError> {
    let found = find(context, &args.which)?;
    let record = &found.record;
    let now = context::now();
    let rows = rows(record, None, now);
    let summary = found.journal.run(found.run)?.ok_or(CliError::NoRun { run: found.run })?;
    let is_over = record.progress.ended.is_some() || record.progress.halted.is_some();
    let state = match (&record.progress.halted, record.progress.ended) {
        (Some((reason, _)), _) => RunState::Halted { reason: *reason },
        (None, Some(backstop_core::Outcome::Done)) if record.count(NodeStatus::Complete) == record.len() => {
            RunState::Complete
        }
        (None, None) if context::is_alive(&summary.host) => RunState::Running { pid: summary.host.pid },
        _ => RunState::Interrupted,
    };
    let until = if is_over { record.progress.last_at.unwrap_or(now) } else { now };
    let elapsed = record.progress.active(until);
    let changed = record.phases().filter(PhaseProgress::changed_since);
    let next = match &state {
        RunState::Halted { .. } => {
            record.progress.halted.as_ref().map(|(_, resume)| SafeText::new(resume.clone()))
        }
        RunState::Interrupted => Some(SafeText::new(next_command(record))),
        _ => None,
    };
    let given = PlanStatus {
        plan: record.path().clone(),
        run: found.run,
        state,
        progress: Progress::of(&rows, elapsed, None),
        rows,
        changed: changed.map(|phase| phase.plan.shown.clone()).collect(),
        next,
    };
    if args.json {
        terminal::print(&format!("{}\n", to_json(&plan_status_json(&given))))?;
    } else {
        terminal::print(&plan_status(&given, terminal::stdout_width(), terminal::stdout_style()))?;
    }
    Ok(DONE)
}

fn logs(context: &Context, args: &cli::PlanAttempt) -> Result<u8, CliError> {
    let found = find(context, &args.which)?;
    let at = phase_of(&found.record, &args.phase)?;
    let phase = found.record.phase(at);
    let attempt = args.attempt.unwrap_or(phase.node.total);
    let file = found.views.attempt_log(&phase.plan.id, attempt);
    if phase.node.total == 0 {
        return Err(CliError::NotRun { phase: args.phase.clone() });
    }
    if attempt == 0 || attempt > phase.node.total {
        return Err(CliError::NoAttempt { phase: args.phase.clone(), attempt, total: phase.node.total });
    }
    let mut text = Vec::new();
    let read = std::fs::File::open(&file).and_then(|file| {
        std::io::Read::read_to_end(&mut std::io::Read::take(file, LOG_BYTES_MAX), &mut text)
    });
    read.map_err(|error| CliError::Read { file: file.clone(), error })?;
    let text = SafeText::from_bytes(&text);
    if args.json {
        let value = json!({
            "schema": 1, "run": found.run, "phase_id": phase.plan.id, "attempt": attempt,
            "file": file.display().to_string(), "text": text.terminal(),
        });
        terminal::print(&format!("{}\n", to_json(&value)))?;
    } else {
        terminal::print(&text.terminal())?;
    }
    Ok(DONE)
}

fn diff(context: &Context, args: &cli::PlanAttempt) -> Result<u8, CliError> {
    let found = find(context, &args.which)?;
    let at = phase_of(&found.record, &args.phase)?;
    let phase = found.record.phase(at);
    let attempt = args.attempt.unwrap_or(phase.node.total);
    let repo = Repo::find(&context.project)
        .map_err(CliError::git)?
        .ok_or(CliError::NoDiff { phase: args.phase.clone() })?;
    let id = phase.plan.id.parse()?;
    let name = attempt_ref(found.run, &id, attempt);
    let saved =
        repo.read_ref(&name).map_err(CliError::git)?.ok_or(CliError::NoDiff { phase: args.phase.clone() })?;
    let base =
        base_of(&found, &phase.plan.id, attempt).ok_or(CliError::NoDiff { phase: args.phase.clone() })?;
    if args.json {
        let changed = repo.changed_paths(&base, &saved).map_err(CliError::git)?;
        let paths: Vec<_> = changed
            .iter()
            .map(|changed| json!({ "path": changed.path.to_string_lossy(), "how": changed.how.name() }))
            .collect();
        let value = json!({
            "schema": 1, "run": found.run, "phase_id": phase.plan.id, "attempt": attempt,
            "reference": name, "base": base.to_string(), "commit": saved.to_string(), "paths": paths,
        });
        terminal::print(&format!("{}\n", to_json(&value)))?;
    } else {
        let text = repo.diff(&base, &saved).map_err(CliError::git)?;
        terminal::print(&SafeText::from_bytes(&text).terminal())?;
    }
    Ok(DONE)
}

/// The command that goes on with a run.
fn next_command(record: &RunRecord) -> String {
    match record.plan.resume.as_str() {
        "" => format!("backstop run {}", record.path().line(400)),
        known => known.to_owned(),
    }
}

/// The commit that an attempt began from.
fn base_of(found: &Found, id: &str, attempt: u32) -> Option<Sha> {
    found.journal.load(found.run).ok()?.iter().find_map(|event| match &event.kind {
        EventKind::AttemptFinished { operation, attempt: n, delivery: Some(delivery), .. }
            if operation.raw() == id && *n == attempt =>
        {
            delivery.base.as_ref()?.parse().ok()
        }
        _ => None,
    })
}

/// Sets phases back, or passes them over. Gives the plan's path.
fn change(context: &Context, args: &cli::PlanChange, word: &str) -> Result<PathBuf, CliError> {
    let skip = word == "skip";
    let found = find(context, &args.which)?;
    let lock = read::lock_name(found.record.path().raw());
    let hold = match context.folder()?.hold(&context.project, &lock, context::host())? {
        Held::Ours(hold) => hold,
        Held::By(holder) => {
            return Err(CliError::HeldBy { holder, plan: found.record.path().raw().to_owned() });
        }
    };
    let phases: Vec<usize> =
        args.phases.iter().map(|given| phase_of(&found.record, given)).collect::<Result<_, _>>()?;
    if let Some(at) =
        phases.iter().find(|at| skip && found.record.phase(**at).node.status == NodeStatus::Complete)
    {
        return Err(CliError::PhaseComplete { phase: found.record.phase(*at).plan.shown.line(40) });
    }
    let kinds = start_events::set_phases(&found.record, &phases, word, &person(args.why.as_ref()));
    let writer = RunJournal::resume(&found.journal, found.run, context::host())?;
    writer.append(kinds)?;
    let record = RunRecord::of(&found.journal.load(found.run)?);
    let _ = found.views.make().and_then(|()| found.views.write_phases(&record, &phases));
    let file = context.project.join(record.path().raw());
    if let Err(error) = mark(&file, &record, &phases) {
        terminal::warn(&format!("the plan's marks cannot be written: {error}"), None);
    }
    drop(hold);
    let names: Vec<String> = phases.iter().map(|at| record.phase(*at).plan.shown.line(40)).collect();
    let next = next_command(&record);
    if args.json {
        let states: Vec<_> = phases
            .iter()
            .map(|at| json!({ "phase_id": record.phase(*at).plan.id, "status": record.phase(*at).node.status.name(), "skipped": record.phase(*at).node.skipped }))
            .collect();
        terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": 1, "run": found.run, "phases": states, "next": next }))
        ))?;
    } else {
        let what = if skip { "passed over" } else { "pending again" };
        terminal::say(&format!("{}: {what}; go on with `{next}`\n", names.join(", ")));
        let waits = |at: &usize| {
            let id = &record.phase(*at).plan.id;
            let waits = |p: &PhaseProgress<'_>| {
                p.node.status == NodeStatus::Complete && p.plan.depends_on.contains(id)
            };
            record.phases().filter(waits).count()
        };
        let later: usize = if skip { 0 } else { phases.iter().map(waits).sum() };
        if later > 0 {
            terminal::warn(
                &format!(
                    "finished phases that wait for what is done again ({later}) are not done again themselves"
                ),
                Some("`backstop plan reset` sets them back, too"),
            );
        }
    }
    Ok(context.project.join(record.path().raw()))
}

fn retry(context: &Context, args: &cli::PlanRetry, format: Option<LogFormat>) -> Result<u8, CliError> {
    let found = find(context, &args.change.which)?;
    let resume = Some(next_command(&found.record));
    let plan = change(context, &args.change, "retry")?;
    if args.no_run {
        return Ok(DONE);
    }
    let words = resume.and_then(|line| shell::words(&line)).unwrap_or_default();
    let run = cli::run_again(&words, &plan, args.change.why.as_deref(), args.change.json)
        .ok_or(CliError::NothingToResume { plan: plan.display().to_string() })?;
    super::run(&run, format)
}
