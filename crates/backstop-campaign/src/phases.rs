//! Explorers, planners and tasks as phases: what runs a plan's phases runs them too.
//!
//! Pure: tasks in, a plan that was never a file out.

use crate::task::{Task, TaskPlan};
use backstop_core::{SafeText, Sha256};
use backstop_plan::document::{Phase, PhaseId, Plan, Settings, Status};
use std::collections::BTreeMap;

/// How often a failed test is run again before it counts.
const FLAKY_RERUNS: u32 = 2;

/// A plan of phases that nobody wrote into a file.
pub fn plan_of(phases: Vec<Phase>) -> Plan {
    let mut digest = Sha256::new();
    for phase in &phases {
        digest.update(phase.hash.as_bytes());
    }
    Plan { phases, table_hash: digest.hex(), ..Plan::default() }
}

fn phase(id: PhaseId, name: &str, section: String, settings: Settings, hash: String) -> Phase {
    Phase {
        id,
        name: SafeText::new(name),
        depends_on: Vec::new(),
        parallel_with: Vec::new(),
        estimate: None,
        estimated: None,
        status: Status::default(),
        tasks: Vec::new(),
        section: SafeText::new(section),
        settings,
        hash,
        line: 0,
    }
}

/// The phase of somebody who answers in words.
pub fn asked_phase(id: &str, name: &str, prompt: &str) -> Option<Phase> {
    let hash = Sha256::of(prompt).hex();
    Some(phase(
        id.parse().ok()?,
        name,
        prompt.to_owned(),
        Settings { gates: Some(Vec::new()), ..Settings::default() },
        hash,
    ))
}

/// The phases of a campaign's tasks, in the plan's order. What they wait for is known to be there.
pub fn task_phases(plan: &TaskPlan) -> Vec<Phase> {
    let number: BTreeMap<&str, usize> =
        plan.tasks.iter().enumerate().map(|(at, task)| (task.seq.as_str(), at)).collect();
    let of = |task: &Task| {
        let settings = Settings {
            files: task.delta.clone(),
            flaky: Some(FLAKY_RERUNS),
            repeatable: Some(true),
            ..Settings::default()
        };
        // It is what it says: a task that is planned anew is another one.
        let hash = Sha256::of(serde_json::to_string(task).unwrap_or_default()).hex();
        let id: PhaseId = task.seq.parse().ok()?;
        let mut one = phase(id, &task.slug, section(plan, task), settings, hash);
        one.depends_on = task.depends.iter().filter_map(|seq| number.get(seq.as_str()).copied()).collect();
        one.depends_on.sort_unstable();
        Some(one)
    };
    plan.tasks.iter().filter_map(of).collect()
}

/// What the builder of a task is told. Lines that are no numbers are left out: the whole file is
/// looked at then.
fn section(plan: &TaskPlan, task: &Task) -> String {
    let mut out = format!("# Task {}: {} ({})\n\n", task.seq, task.slug, task.kind.name());
    out.push_str(&format!("Objective of the campaign: {}\n\n", plan.objective));
    if !task.description.is_empty() {
        out.push_str(&format!("{}\n\n", task.description));
    }
    out.push_str("Files that this task changes or creates:\n\n");
    for file in &task.delta {
        let lines = task.target_lines.get(file).filter(|_| task.has_valid_lines());
        let lines = lines.map(|lines| format!(" (lines {lines})")).unwrap_or_default();
        out.push_str(&format!("- `{file}`{lines}\n"));
    }
    out.push_str(&format!("\nProof, which is run on the result: `{}`\n", task.verify));
    let idioms = plan.idioms.and(&task.idioms);
    for (label, list) in [("must have", &idioms.required), ("must not have", &idioms.forbidden)] {
        if !list.is_empty() {
            let shown: Vec<String> = list.iter().map(|pattern| format!("`{pattern}`")).collect();
            out.push_str(&format!("\nWhat you add {label}: {}\n", shown.join(", ")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_become_phases_with_their_dependencies() {
        let task = |seq: &str, depends: &[&str]| Task {
            seq: seq.to_owned(),
            slug: format!("t{seq}"),
            delta: vec!["a.py".to_owned()],
            verify: "true".to_owned(),
            depends: depends.iter().map(|on| (*on).to_owned()).collect(),
            ..Task::default()
        };
        let mut plan = TaskPlan {
            tasks: vec![task("001", &[]), task("002", &[]), task("003", &["001", "002"])],
            ..TaskPlan::default()
        };
        let phases = task_phases(&plan);
        assert_eq!(phases[2].depends_on, [0, 1]);
        assert_eq!(phases[2].id.key().as_str(), "003");
        plan.tasks.remove(0);
        plan.tasks[1].depends = vec!["002".to_owned()];
        let after = task_phases(&plan);
        assert_eq!((after.len(), after[1].depends_on.clone()), (2, vec![0]));
        assert_ne!(after[1].hash, phases[2].hash, "a changed task is another one");
    }
}
