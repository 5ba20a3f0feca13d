//! The gates of phases, to be run on the tree as it is.

use super::{Equipper, PlanFile, RunError, SuggestedGates};
use crate::document::{PhaseId, ReadOptions};
use backstop_runtime::Project;
use backstop_work::gate::Gate;
use std::path::Path;

/// Reads a plan, and gives the gates of the phases that are named, of all where none is, each once.
pub fn gates_to_verify(
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
