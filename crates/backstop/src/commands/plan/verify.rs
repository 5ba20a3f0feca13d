//! `backstop plan verify`: the gates of phases, run on the tree as it is.

use crate::error::{CliError, DONE, FAILED};
use crate::{process, terminal};
use backstop_core::SafeText;
use backstop_exec::Stop;
use backstop_plan::runs::FoundRun;
use backstop_plan::start::gates_to_verify;
use backstop_runtime::Project;
use backstop_work::gate::{GateRun, run};
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
    let (found, gates) = gates_to_verify(project, &plan, &args.phases)?;
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
        let plan = &found.path;
        terminal::print_json(&json!({ "schema": 1, "plan": plan, "passed": passed, "gates": gates }))?;
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
