//! An agent wants to stop: the gates say whether it may, once.

use super::handle::Session;
use super::{AgentEvent, answer};
use crate::record::{ended, started_event};
use crate::surroundings::{HookError, Surroundings};
use backstop_core::{EventKind, Outcome, SafeText};
use backstop_exec::{Limits, Stop};
use backstop_report::{FailedGate, agent_stop_blocked};
use backstop_runtime::Project;
use backstop_work::CommandLine;
use backstop_work::gate::{self, Checked, Gate, GateRun, Origin};
use serde_json::Value;
use std::sync::mpsc;
use std::time::Duration;

/// How long all gates may take: agents end their hooks after ten minutes, and what they end says
/// nothing.
const GATES_MAX: Duration = Duration::from_secs(540);
/// An agent that does not say whether it was held lets go after one hold; one that old is of
/// another turn.
const HELD_FOR: Duration = Duration::from_secs(3600);

/// Runs the gates of the configuration; those of a project that is not trusted are not in it. Holds
/// the turn where one fails, unless it was held before.
pub(super) fn answer(
    around: &Surroundings<'_>,
    event: &AgentEvent,
    held: Option<bool>,
) -> Result<Option<Value>, HookError> {
    if held == Some(true) || around.disabled {
        return Ok(None);
    }
    let session = Session::open(around)?;
    let project = &session.project;
    let gates = gates(project);
    if gates.is_empty() {
        return Ok(None);
    }
    let mut checked = check(&session, &gates)?;
    for fault in checked.iter_mut().filter_map(|gate| gate.fault.as_mut()) {
        session.observe(fault);
    }
    let checked = checked;
    session.record(event, events(project, &checked));
    let failed: Vec<FailedGate> = checked.iter().filter_map(|gate| failed(project, gate)).collect();
    if failed.is_empty() {
        return Ok(None);
    }
    let may_hold = match held {
        Some(held) => !held,
        None => project.ask_hooks(|store| store.take_hold(event.session.raw(), HELD_FOR))?.1,
    };
    Ok(may_hold.then(|| answer::hold(&agent_stop_blocked(&failed))))
}

fn gates(project: &Project) -> Vec<Gate> {
    let fixes = project.config.commands("gates", "fix");
    let checks = project.config.commands("gates", "check").into_iter();
    let gate = |(name, argv): (String, Vec<String>)| {
        let mut gate = Gate::new(name.clone(), CommandLine::Argv(argv), Origin::Config);
        gate.fix = fixes.get(&name).cloned().map(CommandLine::Argv);
        gate
    };
    checks.map(gate).collect()
}

fn check(session: &Session<'_>, gates: &[Gate]) -> Result<Vec<Checked>, HookError> {
    let project = &session.project;
    let classifier = session.classifier();
    let mut run = GateRun::new(&project.root, &classifier, (session.around.now)());
    let wall = project.config.plan().gate_timeout.unwrap_or(gate::WALL_MAX).min(GATES_MAX);
    run.limits = Limits { wall: Some(wall), grace: project.config.exec().grace, ..run.limits };
    // The agent ends a hook that takes too long, and nobody looks for what it has started.
    run.dies_with_us = true;
    let stop = Stop::new();
    let (over, waits) = mpsc::channel::<()>();
    let late = stop.clone();
    let clock = std::thread::spawn(move || {
        if waits.recv_timeout(GATES_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            late.request();
        }
    });
    let checked = gate::run(gates, &run, &stop, &mut |_| {}, &mut |_, _| {});
    drop(over);
    let _ = clock.join();
    if stop.requests() > 0 {
        session.log("the gates took too long and were ended; the turn is not held for what was not checked");
    }
    let mut checked = checked.map_err(|error| HookError::Gate(error.to_string()))?;
    // What we ended ourselves has not failed.
    checked.retain(|gate| {
        gate.fault.as_ref().is_none_or(|fault| fault.reason != backstop_core::Reason::Interrupted)
    });
    Ok(checked)
}

fn failed(project: &Project, checked: &Checked) -> Option<FailedGate> {
    let fault = checked.fault.clone()?;
    let masked = |text: &str| SafeText::new(project.redactor.redact(text).into_owned());
    Some(FailedGate {
        gate: masked(&checked.gate),
        check: masked(&checked.check),
        fix: checked.fix.as_deref().map(masked),
        fault,
        output: masked(&String::from_utf8_lossy(&checked.tail)),
    })
}

fn events(project: &Project, checked: &[Checked]) -> Vec<EventKind> {
    let operation = SafeText::new("gates");
    let mut all = vec![started_event(project, &operation)];
    for gate in checked {
        if let Some(fault) = &gate.fault {
            let fault = Box::new(fault.clone());
            all.push(EventKind::ErrorClassified { operation: operation.clone(), attempt: 1, fault });
        }
        all.push(EventKind::GateFinished {
            gate: gate.gate.clone(),
            passed: gate.passed,
            operation: Some(operation.clone()),
            attempt: 1,
            duration_ms: u64::try_from(gate.duration.as_millis()).unwrap_or(u64::MAX),
            reason: gate.fault.as_ref().map(|fault| fault.reason),
            flaky: gate.flaky.clone(),
            known_failures: 0,
        });
    }
    let reason = checked.iter().find_map(|gate| gate.fault.as_ref()).map(|fault| fault.reason);
    let outcome = if reason.is_some() { Outcome::Failed } else { Outcome::Done };
    all.push(ended(outcome, reason));
    all
}
