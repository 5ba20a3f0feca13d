//! `backstop plan verify`: the gates of phases, run on the tree as it is.

use crate::error::{CliError, DONE, FAILED};
use crate::{process, terminal};
use backstop_core::SafeText;
use backstop_exec::Stop;
use backstop_plan::document::ReadOptions;
use backstop_plan::runs::FoundRun;
use backstop_plan::start::{Equipper, PlanFile, RunError};
use backstop_report::to_json;
use backstop_runtime::Project;
use backstop_work::gate::{Gate, GateRun, run};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Run the gates of phases on your tree as it is.
#[derive(Debug, Args)]
pub(crate) struct PlanVerify {
    /// The phases, such as 2A (default: all)
    pub(crate) phases: Vec<String>,
    /// The plan (not needed if only one was run in this project)
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the gates, and says what each found. Exits 1 where one fails.
pub(super) fn verify(project: &Project, args: &PlanVerify) -> Result<u8, CliError> {
    let plan = match &args.plan {
        Some(plan) => plan.clone(),
        None => project.root.join(FoundRun::find(project, None, None)?.record.path().raw()),
    };
    let found = PlanFile::read(&plan, &project.root, &ReadOptions::default())?;
    let mut equipment =
        Equipper::new(&project.config, &project.root, project.is_trusted())?.equip(&found.plan)?;
    // An unknown phase is a mistake, as with `plan accept`.
    Equipper::accept(&found.plan, &mut equipment, &args.phases)?;
    let is_meant = |id: &str| args.phases.is_empty() || args.phases.iter().any(|given| is_same(given, id));
    let mut gates: Vec<Gate> = Vec::new();
    for (phase, equipment) in found.plan.phases.iter().zip(&equipment) {
        let wanted = equipment.gates.iter().filter(|_| is_meant(phase.id.shown()));
        let new: Vec<Gate> = wanted.filter(|gate| !gates.contains(gate)).cloned().collect();
        gates.extend(new);
    }
    if gates.is_empty() {
        let error = RunError::NoGates { plan: found.path };
        return Err(error.into());
    }
    let classifier = project.classifier(&[])?;
    let here = GateRun::new(&project.root, &classifier, process::now());
    let mut started = |started: backstop_work::gate::StartedGate<'_>| {
        terminal::say(&format!("checking: {}\n", SafeText::new(started.gate).line(80)));
    };
    let checks = run(&gates, &here, &Stop::new(), &mut started, &mut |_, _| {})
        .map_err(|error| crate::error::failed(&error).hint(error.hint()))?;
    let passed = checks.iter().all(|checked| checked.passed);
    if args.json {
        let gates: Vec<_> = checks
            .iter()
            .map(|checked| {
                json!({
                    "gate": checked.gate, "check": checked.check, "passed": checked.passed,
                    "reason": checked.fault.as_ref().map(|fault| fault.reason),
                    "cause": checked.fault.as_ref().and_then(|fault| fault.cause.as_ref()).map(|c| c.line(400)),
                })
            })
            .collect();
        let value = json!({ "schema": 1, "plan": found.path, "passed": passed, "gates": gates });
        terminal::print(&format!("{}\n", to_json(&value)))?;
    } else {
        for checked in &checks {
            let line = match &checked.fault {
                None => format!("{}: passed", checked.gate),
                Some(fault) => {
                    let cause = fault.cause.as_ref().map(|cause| cause.line(300)).unwrap_or_default();
                    format!("{}: {}: {cause}", checked.gate, fault.reason)
                }
            };
            terminal::print(&format!("{}\n", SafeText::new(line).line(500)))?;
        }
    }
    Ok(if passed { DONE } else { FAILED })
}

/// Ids are the same in any spelling.
fn is_same(given: &str, id: &str) -> bool {
    let key = |text: &str| text.parse::<backstop_plan::document::PhaseId>().ok().map(|id| id.key().clone());
    key(given).is_some() && key(given) == key(id)
}
