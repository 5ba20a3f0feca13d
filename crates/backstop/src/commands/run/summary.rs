//! How a run ended, and what one would do: for people, and as JSON.

use super::Run;
use super::watch::Show;
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::PlanSettings;
use backstop_core::{End, Policy, SafeText};
use backstop_plan::Ending;
use backstop_plan::document::{Phase, Plan, Status};
use backstop_plan::present::{Facts, completion, halt, waves};
use backstop_plan::record::RunRecord;
use backstop_plan::start::{PlanFile, Workspace, path_in_project};
use backstop_plan::view::ViewFolder;
use backstop_plan::workspace::{Equipment, Worker};
use backstop_report::plan::{
    Ahead, Course, DryPhase, DryRun, PlanReading, completion_json, completion_line, completion_summary,
    dry_run as dry_text, dry_run_json, halt_json, halt_summary, remaining,
};
use backstop_report::to_json;
use backstop_runtime::Project;
use backstop_runtime::admission::UNFREEZE;
use backstop_runtime::host::NodeStatus;
use backstop_work::gate::Origin;
use backstop_work::git::{Repo, tip_ref};
use std::path::Path;
use std::time::Duration;

/// Tells how a run ended.
pub(super) fn tell(
    args: &Run,
    project: &Project,
    views: &ViewFolder,
    ending: &Ending,
    again: &str,
    elapsed: Duration,
    show: Show,
) -> Result<(), CliError> {
    let shown = |path: &Path| {
        path_in_project(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), &project.root)
    };
    let facts = Facts {
        views,
        shown: &shown,
        first: project
            .frozen()
            .map(|_| SafeText::new(format!("Put right why the project is frozen, then `{UNFREEZE}`"))),
        resume: again.to_owned(),
        kept: kept(project, ending),
        elapsed,
        notes: Vec::new(),
        now: process::now(),
    };
    let style = terminal::stderr_style();
    let (width, _) = terminal::size();
    let mut line = String::new();
    let (text, json) = match (&ending.end, &ending.conclusion) {
        (End::Complete, Some(conclusion)) => {
            let Some(done) = completion(&ending.record, conclusion, &facts) else { return Ok(()) };
            line = completion_line(&done, style);
            (completion_summary(&done, width, style), completion_json(&done))
        }
        _ => {
            let Some(halted) = halt(ending, &facts) else { return Ok(()) };
            (halt_summary(&halted, width, style), halt_json(&halted))
        }
    };
    if args.json {
        return terminal::print(&format!("{}\n", to_json(&json)));
    }
    if args.quiet && ending.conclusion.is_some() {
        terminal::say(&format!("{}: {line}\n", ending.record.path().line(200)));
    } else if !matches!(show, Show::Events(_)) {
        let text = project.redactor.redact(&text).into_owned();
        terminal::say(&format!("\n{}\n", text.trim_end()));
        if !line.is_empty() {
            terminal::say(&format!("{line}\n"));
        }
    }
    Ok(())
}

/// Refs that hold work which is not on the user's branch: the tip, where it is not there, and what
/// failed.
fn kept(project: &Project, ending: &Ending) -> Vec<SafeText> {
    let (Some(run), Ok(Some(repo))) = (ending.record.progress.run, Repo::find(&project.root)) else {
        return Vec::new();
    };
    if ending.record.plan.isolation == "none" {
        return Vec::new();
    }
    let Ok(refs) = repo.runs_refs(run) else { return Vec::new() };
    let failed: Vec<&str> = ending
        .record
        .phases()
        .filter(|phase| phase.node.last_error().is_some() || phase.node.lost)
        .map(|phase| phase.plan.id.as_str())
        .collect();
    let tip = tip_ref(run);
    let head = repo.head().ok().and_then(|head| head.sha);
    let of_failed =
        |name: &str| failed.iter().any(|id| name.contains(&format!("/{id}/")) && !name.ends_with("-merged"));
    let unlanded = |sha: &backstop_work::git::Sha| {
        head.as_ref().is_none_or(|head| !repo.contains(head, sha).unwrap_or(false))
    };
    let wanted = refs.iter().filter(|(name, sha)| (*name == tip && unlanded(sha)) || of_failed(name));
    wanted.map(|(name, _)| SafeText::new(name.clone())).collect()
}

/// About how long it takes, where the plan says something of every phase.
fn expected(plan: &Plan, levels: &[Vec<usize>], jobs: usize) -> Option<Duration> {
    let ahead = |at: usize| {
        let planned = Some(plan.phases[at].estimated?);
        let level = levels.iter().position(|level| level.contains(&at)).unwrap_or(0);
        Some(Ahead { level, planned, course: Course::Waiting })
    };
    let all: Vec<Ahead> = (0..plan.phases.len()).map(ahead).collect::<Option<_>>()?;
    remaining(&all, jobs)
}

/// Which phases are done or skipped: by the last run, else by the plan's own marks.
pub(super) fn done_phases(found: &PlanFile, last: Option<&RunRecord>, fresh: bool) -> Vec<bool> {
    let is_done = |phase: &Phase| match last {
        Some(record) => record
            .phase_of(phase.id.key().as_str())
            .is_some_and(|known| known.node.status == NodeStatus::Complete),
        None => !fresh && matches!(phase.status, Status::Complete | Status::Skipped),
    };
    found.plan.phases.iter().map(is_done).collect()
}

/// How the plan was understood.
fn reading(plan: &Plan, equipment: &[Equipment], done: &[bool], settings: &PlanSettings) -> PlanReading {
    let mut checks: Vec<SafeText> = Vec::new();
    let mut agents: Vec<String> = Vec::new();
    for equipment in equipment {
        for gate in &equipment.gates {
            let (shown, origin) = (gate.check.shown(), gate.origin);
            let text = SafeText::new(match origin {
                Origin::Detected(_) => format!("{shown} (detected)"),
                Origin::Config => format!("{shown} (config)"),
                Origin::Plan => shown,
            });
            if !checks.contains(&text) {
                checks.push(text);
            }
        }
        let agent = match &equipment.worker {
            Worker::Agent { agent, .. } => agent.name.clone(),
            Worker::Command(_) => "none: commands".to_owned(),
            Worker::Nobody => "nobody".to_owned(),
        };
        if !agents.contains(&agent) {
            agents.push(agent);
        }
    }
    let unestimated =
        plan.phases.iter().zip(done).filter(|(phase, done)| !**done && phase.estimated.is_none());
    PlanReading {
        format: SafeText::new(plan.format.title()),
        by: SafeText::new(plan.by.name()),
        tasks: plan.items,
        groups: plan.groups,
        done: done.iter().filter(|done| **done).count(),
        waves: waves(plan, &|at| done[at], settings.parallel == "auto"),
        checks,
        unestimated: unestimated.count(),
        agent: SafeText::new(agents.join(", ")),
        passed_over: plan
            .passed_over
            .iter()
            .map(|part| SafeText::new(format!("line {}: {}", part.line, part.text)))
            .collect(),
    }
}

/// Shows what would be done.
#[expect(clippy::too_many_arguments)] // One caller; they are what the text is made of.
pub(super) fn dry_run(
    args: &Run,
    done: &[bool],
    found: &PlanFile,
    equipment: &[Equipment],
    settings: &PlanSettings,
    policy: &Policy,
    workspace: &Workspace,
    notes: &[String],
    again: &str,
) -> Result<u8, CliError> {
    let plan = &found.plan;
    let mode = workspace.mode(again, policy.usual_attempts());
    let jobs = if mode.isolation == "none" { 1 } else { settings.jobs };
    // Its own chances: waits for the world and conflicts do not use them up.
    let most = policy.usual_attempts();
    let phase = |at: &usize| {
        let (phase, equipment) = (&plan.phases[*at], &equipment[*at]);
        let by = match &equipment.worker {
            Worker::Agent { agent, model: Some(model) } => format!("{} ({model})", agent.name),
            Worker::Agent { agent, model: None } => agent.name.clone(),
            Worker::Command(command) => format!("`{}`", command.shown()),
            Worker::Nobody => "nobody: its gates alone".to_owned(),
        };
        DryPhase {
            id: SafeText::new(phase.id.shown()),
            name: phase.name.clone(),
            by: SafeText::new(by),
            attempts_most: most,
            tasks: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
            estimate: phase.estimate.clone(),
            gates: equipment.gates.iter().map(|gate| SafeText::new(gate.name.clone())).collect(),
            done: done[*at],
        }
    };
    let levels = plan.levels();
    let warnings =
        plan.warnings.iter().map(|warning| SafeText::new(format!("line {}: {}", warning.line, warning.text)));
    let overlaps = plan.overlaps().into_iter().map(|(one, other, files)| {
        let id = |at: usize| SafeText::new(plan.phases[at].id.shown());
        (id(one), id(other), files.into_iter().map(SafeText::new).collect())
    });
    let given = DryRun {
        plan: SafeText::new(found.path.clone()),
        order: levels.iter().flatten().map(|at| SafeText::new(plan.phases[*at].id.shown())).collect(),
        levels: levels.iter().map(|level| level.iter().map(phase).collect()).collect(),
        jobs: u32::try_from(jobs).unwrap_or(1),
        parallel: SafeText::new(settings.parallel.clone()),
        warnings: warnings.chain(notes.iter().map(|note| SafeText::new(note.clone()))).collect(),
        overlaps: overlaps.collect(),
        most_attempts: most
            .saturating_mul(u32::try_from(done.iter().filter(|done| !**done).count()).unwrap_or(u32::MAX)),
        isolation: SafeText::new(mode.isolation),
        commit: SafeText::new(match (&settings.commit, workspace) {
            (Some(commit), _) => commit.clone(),
            (None, Workspace::InPlace(place)) if place.repo.is_none() => "none".to_owned(),
            (None, _) => "not said yet".to_owned(),
        }),
        expected: expected(plan, &levels, jobs),
        run: SafeText::new(match (&settings.commit, workspace) {
            (None, Workspace::Worktrees(_)) => format!("{again} --commit auto"),
            _ => again.to_owned(),
        }),
        reading: Some(reading(plan, equipment, done, settings)),
    };
    if args.json {
        terminal::print(&format!("{}\n", to_json(&dry_run_json(&given))))?;
    } else {
        terminal::print(&dry_text(&given, terminal::stdout_width(), terminal::stdout_style()))?;
    }
    Ok(DONE)
}
