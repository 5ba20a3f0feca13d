//! Running gates, in order.

use super::again;
use super::failures::failures;
use super::once::GateContext;
use super::{Checked, Gate, GateError, Log, StartedGate};
use backstop_classify::Classifier;
use backstop_core::{Reason, Timestamp};
use backstop_exec::{Limits, Stop};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long a gate may run, where nobody says.
pub const WALL_MAX: Duration = Duration::from_secs(600);
/// How long a gate may be silent, where nobody says.
pub const IDLE_MAX: Duration = Duration::from_secs(300);

/// Where and within which bounds gates are run.
#[derive(Debug)]
pub struct GateRun<'a> {
    /// The folder to run them in.
    pub folder: &'a Path,
    /// Variables to add to their environment.
    pub env: Vec<(OsString, OsString)>,
    /// Says what a failure is.
    pub classifier: &'a Classifier,
    /// The bounds of each.
    pub limits: Limits,
    /// Where everything that they write goes.
    pub log: Log,
    /// When this begins.
    pub at: Timestamp,
    /// Whether they are ended when this process is killed, as
    /// [`Spec::dies_with_us`](backstop_exec::Spec) says.
    pub dies_with_us: bool,
}

impl<'a> GateRun<'a> {
    /// With the usual bounds, no variables and no log.
    pub fn new(folder: &'a Path, classifier: &'a Classifier, at: Timestamp) -> Self {
        let limits = Limits { wall: Some(WALL_MAX), idle: Some(IDLE_MAX), ..Limits::default() };
        Self { folder, env: Vec::new(), classifier, limits, log: Log::none(), at, dies_with_us: false }
    }
}

/// Runs gates in order, all of them even when one fails. When somebody asks for the end, the
/// running one is ended and the rest are not run: the answer is shorter then.
///
/// `started` is called when a command runs, `done` when a gate is over; it may judge what was
/// found. This blocks; the caller gives it a thread.
pub fn run(
    gates: &[Gate],
    run: &GateRun<'_>,
    stop: &Stop,
    started: &mut dyn FnMut(StartedGate<'_>),
    done: &mut dyn FnMut(&Gate, &mut Checked),
) -> Result<Vec<Checked>, GateError> {
    for gate in gates {
        if gate.check.is_empty() {
            return Err(GateError::Empty { gate: gate.name.clone() });
        }
        if gate.check.has_nul() {
            return Err(GateError::Nul { gate: gate.name.clone() });
        }
    }
    let mut context = GateContext { run, stop, started, spent: Duration::ZERO };
    let mut all = Vec::with_capacity(gates.len());
    for gate in gates {
        if context.is_stopped() {
            break;
        }
        let mut checked = check(gate, &mut context)?;
        done(gate, &mut checked);
        all.push(checked);
    }
    Ok(all)
}

fn check(gate: &Gate, context: &mut GateContext<'_>) -> Result<Checked, GateError> {
    let before = context.spent;
    let first = context.once(gate, &gate.check, 0)?;
    let mut outcome = again::RerunResult { once: first, flaky: Vec::new(), reruns: 0 };
    if gate.flaky > 0 && outcome.once.fault.as_ref().is_some_and(|f| f.reason == Reason::TestFailure) {
        outcome = again::rerun_failed(gate, outcome.once, context)?;
    }
    let again::RerunResult { once, flaky, reruns } = outcome;
    Ok(Checked {
        gate: gate.name.clone(),
        passed: once.fault.is_none(),
        failures: once.fault.as_ref().and_then(|fault| failures(fault, &once.text)),
        known_failures: 0,
        fault: once.fault,
        flaky,
        reruns,
        duration: context.spent.saturating_sub(before),
        exit: once.exit,
        tail: once.tail,
        check: gate.check.shown(),
        fix: gate.fix.as_ref().map(super::CommandLine::shown),
    })
}
