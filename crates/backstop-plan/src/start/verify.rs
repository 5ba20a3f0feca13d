//! The gates of phases, to be run on the tree as it is.

use super::{Equipper, PlanFile, RunError, SuggestedGates};
use crate::document::ReadOptions;
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

/// Reads a plan, and gives the gates of the phases that are named, of all where none is.
fn gates_to_verify(
    project: &Project,
    plan: &Path,
    phases: &[String],
) -> Result<(PlanFile, Vec<Gate>), RunError> {
    let file = PlanFile::read(plan, &project.root, &ReadOptions::default())?;
    let equipper = Equipper::new(&project.config, &project.root, SuggestedGates::may_run(project))?;
    let gates = equipper.gates_of(&file.plan, phases)?;
    if gates.is_empty() {
        return Err(RunError::NoGates { plan: file.path });
    }
    Ok((file, gates))
}
