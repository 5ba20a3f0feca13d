//! How a plan was understood, for a dry run.

use super::waves;
use crate::document::{By, Phase, Plan, Status};
use crate::record::RunRecord;
use crate::workspace::{Equipment, Worker};
use backstop_config::PlanSettings;
use backstop_core::SafeText;
use backstop_report::plan::PlanReading;
use backstop_runtime::host::NodeStatus;
use backstop_work::gate::Origin;

/// Which phases are done or skipped: by the last run, else by the plan's own marks.
pub fn done_phases(plan: &Plan, last: Option<&RunRecord>, fresh: bool) -> Vec<bool> {
    let is_done = |phase: &Phase| match last {
        Some(record) => record
            .phase_of(phase.id.key().as_str())
            .is_some_and(|known| known.node.status == NodeStatus::Complete),
        None => !fresh && matches!(phase.status, Status::Complete | Status::Skipped),
    };
    plan.phases.iter().map(is_done).collect()
}

/// How the plan was understood.
pub fn reading(plan: &Plan, equipment: &[Equipment], done: &[bool], settings: &PlanSettings) -> PlanReading {
    let mut checks: Vec<SafeText> = Vec::new();
    let mut agents: Vec<String> = Vec::new();
    for equipment in equipment {
        for gate in &equipment.gates {
            let (shown, origin) = (gate.check.shown(), gate.origin);
            let text = SafeText::new(match origin {
                Origin::Detected(_) => format!("{shown} (detected)"),
                Origin::Config => format!("{shown} (config)"),
                Origin::Plan | Origin::PlanWide => shown,
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
        done: count_done(plan, done),
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

/// How much of a plan is done: phases, or their tasks where several tasks are a phase.
fn count_done(plan: &Plan, done: &[bool]) -> usize {
    let phases = plan.phases.iter().zip(done);
    if plan.by == By::Task || plan.items == plan.groups {
        return phases.filter(|(_, done)| **done).count();
    }
    let of_phase = |(phase, is_done): (&Phase, &bool)| match phase.tasks.is_empty() {
        true => usize::from(*is_done),
        false => phase.tasks.iter().filter(|task| task.depth == 0 && (*is_done || task.done)).count(),
    };
    phases.map(of_phase).sum()
}
