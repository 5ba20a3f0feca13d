//! What a run of a plan would do.

use super::reading;
use crate::document::Plan;
use crate::start::{PlanFile, Workspace};
use crate::workspace::{Equipment, Worker};
use backstop_config::PlanSettings;
use backstop_core::{Policy, SafeText};
use backstop_report::plan::{Ahead, Course, DryPhase, DryRun, remaining};
use std::time::Duration;

/// What a run of this plan would do; `again` is the command that starts it. `done` says of each
/// phase whether it is done or skipped.
#[expect(clippy::too_many_arguments)] // One caller; they are what the text is made of.
pub fn forecast(
    file: &PlanFile,
    equipment: &[Equipment],
    done: &[bool],
    settings: &PlanSettings,
    policy: &Policy,
    workspace: &Workspace,
    notes: &[String],
    again: &str,
) -> DryRun {
    let plan = &file.plan;
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
    DryRun {
        plan: SafeText::new(file.path.clone()),
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
    }
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
