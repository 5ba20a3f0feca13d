//! The gates of phases, to be run on the tree as it is.

use super::{Equipper, PlanFile, RunError, SuggestedGates};
use crate::document::{PhaseId, ReadOptions};
use crate::runs::FoundRun;
use backstop_exec::Stop;
use backstop_report::plan::{VerifiedGate, VerifiedGates};
use backstop_runtime::Project;
use backstop_work::gate::{Checked, Gate, GateRun, StartedGate, run};
use std::path::Path;

/// Runs the gates of phases on the tree as it is, and says what each found; of the only plan of
/// this project where none is named. `started` is told of each gate.
pub fn verify_gates(
    project: &Project,
    plan: Option<&Path>,
    phases: &[String],
    started: &mut dyn FnMut(&str),
) -> Result<VerifiedGates, RunError> {
    let plan = match plan {
        Some(plan) => plan.to_owned(),
        None => project.root.join(FoundRun::find(project, None, None)?.record.path().raw()),
    };
    let (file, gates) = gates_to_verify(project, &plan, phases)?;
    let classifier = project.classifier(&[])?;
    let here = GateRun::new(&project.root, &classifier, project.process.now());
    let mut started = |gate: StartedGate<'_>| started(gate.gate);
    let checks = run(&gates, &here, &Stop::new(), &mut started, &mut |_, _| {})?;
    let gate = |checked: Checked| VerifiedGate {
        gate: checked.gate,
        check: checked.check,
        passed: checked.passed,
        fault: checked.fault,
    };
    Ok(VerifiedGates { plan: file.path, gates: checks.into_iter().map(gate).collect() })
}

/// Reads a plan, and gives the gates of the phases that are named, of all where none is, each once.
fn gates_to_verify(
    project: &Project,
    plan: &Path,
    phases: &[String],
) -> Result<(PlanFile, Vec<Gate>), RunError> {
    let file = PlanFile::read(plan, &project.root, &ReadOptions::default())?;
    let mut equipment =
        Equipper::new(&project.config, &project.root, SuggestedGates::may_run(project))?.equip(&file.plan)?;
    // An unknown phase is a mistake, as with `plan accept`.
    Equipper::accept(&file.plan, &mut equipment, phases)?;
    let is_wanted = |id: &str| phases.is_empty() || phases.iter().any(|given| is_same(given, id));
    let mut gates: Vec<Gate> = Vec::new();
    for (phase, equipment) in file.plan.phases.iter().zip(&equipment) {
        let wanted = equipment.gates.iter().filter(|_| is_wanted(phase.id.shown()));
        let new: Vec<Gate> = wanted.filter(|gate| !gates.contains(gate)).cloned().collect();
        gates.extend(new);
    }
    if gates.is_empty() {
        return Err(RunError::NoGates { plan: file.path });
    }
    Ok((file, gates))
}

/// Whether both are the same phase, however they are spelled.
fn is_same(given: &str, id: &str) -> bool {
    let key = |text: &str| text.parse::<PhaseId>().ok().map(|id| id.key().clone());
    key(given).is_some() && key(given) == key(id)
}
