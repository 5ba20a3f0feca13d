//! Runs gates in a folder: those of a phase on its work, and those of all phases on the tree that
//! the run starts from or that is about to land.

use super::attempt_log::AttemptLog;
use super::baseline::{Baselines, Standing, base_gate, is_the_machines};
use super::phase_runner::{AttemptDir, PhaseRunner};
use backstop_core::{BaseGate, BaseState, EventKind, Fault, Reason, SafeText, Sha256};
use backstop_exec::Limits;
use backstop_runtime::host::{GateResult, IntegrationResult, Note};
use backstop_work::Log;
use backstop_work::gate::{self, Checked, Gate, GateRun};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// How long it is believed that a gate passes on a tree, without running it again.
const PASSED_BELIEVED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Called with each gate that has ended, and whether its result is to be reported.
type Ended<'e> = dyn FnMut(&Gate, &mut Checked) + 'e;

impl PhaseRunner<'_> {
    /// What is known of the run's base.
    pub(super) fn baselines(&self) -> MutexGuard<'_, Baselines> {
        self.baselines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a phase came in, and the tip has moved on from `old`: what it has mended counts
    /// from now on. Gives what is to be recorded.
    pub(super) fn advance_baseline(&self, node: usize, old: &str) -> Option<EventKind> {
        let found = self.gates_found.lock().unwrap_or_else(PoisonError::into_inner).remove(&node)?;
        let gates = self.baselines().advance(old, &found)?;
        Some(EventKind::BaseChecked { tree: None, gates })
    }

    /// A phase is complete and the tip stays where it is: its gates ran on that very tree, and what
    /// does not fail there any more was mended by somebody.
    pub(super) fn unchanged(&self, node: usize) -> IntegrationResult {
        let found = self.gates_found.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
        let gates = found.and_then(|found| self.baselines().learn(&found));
        let events = gates.map(|gates| EventKind::BaseChecked { tree: None, gates });
        IntegrationResult::Done { tip: None, commit: None, events: events.into_iter().collect() }
    }

    /// Runs the gates of a phase, under a title in the attempt's log, and judges them beside the
    /// base. Gates that cannot be run are a fault; those that do not count are left out.
    pub(super) fn run_gates(
        &self,
        dir: &AttemptDir<'_>,
        log: &AttemptLog,
        title: &str,
    ) -> Result<Vec<Checked>, Box<Fault>> {
        let baseline = self.baselines().at(dir.tip.as_deref()).clone();
        let mut found: Vec<BaseGate> = Vec::new();
        let mut uncounted: Vec<String> = Vec::new();
        let mut ended = |gate: &Gate, checked: &mut Checked| {
            found.push(base_gate(gate, checked));
            let standing = baseline.judge(gate, checked);
            if let Standing::NoWorse(sentence) | Standing::NotCounted(sentence) = &standing {
                log.write_line(sentence);
                dir.reporter.note(Note::Message(SafeText::new(format!(
                    "{}: {sentence}",
                    self.phase(dir.node).id.shown()
                ))));
            }
            if matches!(standing, Standing::NotCounted(_)) {
                uncounted.push(gate.name.clone());
            }
            if let Some(cause) = checked.flaky_fault().and_then(|fault| fault.cause) {
                log.write_line(&format!("flaky: {}", cause.line(400)));
            }
            dir.reporter.gate_finished(GateResult {
                gate: checked.gate.clone(),
                passed: checked.passed,
                reason: checked.fault.as_ref().map(|fault| fault.reason),
                flaky: checked.flaky.clone(),
                known_failures: checked.known_failures,
                duration: checked.duration,
            });
        };
        let gates = &self.equipment[dir.node].gates;
        let mut checks = self.run_each(dir, log, title, gates, &mut ended)?;
        checks.retain(|checked| !uncounted.contains(&checked.gate));
        self.gates_found.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.node, found);
        Ok(checks)
    }

    fn run_each(
        &self,
        dir: &AttemptDir<'_>,
        log: &AttemptLog,
        title: &str,
        gates: &[Gate],
        ended: &mut Ended<'_>,
    ) -> Result<Vec<Checked>, Box<Fault>> {
        if gates.is_empty() {
            return Ok(Vec::new());
        }
        log.write_line(&format!("--- {title} ---"));
        let usual = GateRun::new(dir.folder, self.classifier, (self.now)());
        let run = GateRun {
            env: self.env(dir).into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            log: Log::to(log.clone()),
            limits: Limits { wall: self.gate_timeout, ..usual.limits.clone() },
            ..usual
        };
        let mut started = |started: gate::StartedGate<'_>| {
            dir.reporter.note(Note::Checking(started.gate.to_owned()));
            self.record_child(dir, started.child);
        };
        gate::run(gates, &run, dir.stop, &mut started, ended).map_err(|error| {
            let mut fault = Fault::new(Reason::StateInvalid);
            fault.cause = Some(SafeText::new(error.to_string()));
            fault.suggested_action = SafeText::new(error.hint());
            Box::new(fault)
        })
    }

    /// Opens the log of checks that belong to no phase.
    fn base_log(&self) -> AttemptLog {
        AttemptLog::new(self.views.open_base_log(), Arc::clone(&self.redactor))
    }

    /// Runs the set-up command of a worktree.
    pub(super) fn run_setup(&self, dir: &AttemptDir<'_>, gate: &Gate) -> Result<Checked, Box<Fault>> {
        let log = match dir.attempt {
            0 => self.base_log(),
            attempt => self.log(dir.node, attempt),
        };
        let checks = self.run_each(dir, &log, "set-up", std::slice::from_ref(gate), &mut |_, _| {});
        log.finish();
        checks?.into_iter().next().ok_or_else(|| {
            let mut fault = Fault::new(Reason::Interrupted);
            fault.cause = Some("stopped before the set-up".into());
            Box::new(fault)
        })
    }

    /// The gates of phases that are still to run, each once, with a phase that has it.
    pub(super) fn gates_to_come(&self) -> Vec<(usize, Gate)> {
        let mut all: Vec<(usize, Gate)> = Vec::new();
        for &node in &self.to_come {
            for gate in &self.equipment[node].gates {
                let is_same = |known: &Gate| known.name == gate.name && known.check == gate.check;
                if !all.iter().any(|(_, known)| is_same(known)) {
                    all.push((node, gate.clone()));
                }
            }
        }
        all
    }

    /// Runs gates on a tree that no phase has worked on. Nothing is judged. A gate that is known to
    /// pass on this very tree is not run again.
    pub(super) fn check_tree(
        &self,
        dir: &AttemptDir<'_>,
        title: &str,
        tree: Option<&str>,
        gates: &[(usize, Gate)],
    ) -> Result<Vec<(Gate, Checked)>, Box<Fault>> {
        let log = self.base_log();
        let mut all = Vec::new();
        for (node, gate) in gates {
            let key = tree.map(|tree| passed_key(tree, gate));
            if key.as_ref().is_some_and(|key| self.has_passed(key)) {
                all.push((gate.clone(), passed(gate)));
                continue;
            }
            let dir = AttemptDir { node: *node, previous: None, tip: None, ..*dir };
            let found = self.run_each(&dir, &log, title, std::slice::from_ref(gate), &mut |_, _| {})?;
            let Some(checked) = found.into_iter().next().filter(|_| dir.stop.requests() == 0) else {
                let mut fault = Fault::new(Reason::Interrupted);
                fault.cause = Some("stopped while the gates ran".into());
                return Err(Box::new(fault));
            };
            if let Some(key) = key.filter(|_| checked.passed && checked.reruns == 0) {
                self.remember_passed(&key);
            }
            all.push((gate.clone(), checked));
        }
        log.finish();
        Ok(all)
    }

    fn has_passed(&self, key: &str) -> bool {
        let known = |results: &Arc<backstop_store::LimitStore>| results.result(key, PASSED_BELIEVED_FOR);
        self.results.as_ref().is_some_and(|results| known(results).is_ok_and(|found| found.is_some()))
    }

    fn remember_passed(&self, key: &str) {
        if let Some(results) = &self.results {
            // Where it cannot be written, the gate runs once more another time.
            let _ = results.keep_result(key, b"", b"");
        }
    }

    /// Tries the gates of all phases on the base, before anybody works: what is red or missing
    /// there is said and recorded. A tool that the plan asks for and that no work can bring is a
    /// fault.
    pub(super) fn check_base(
        &self,
        dir: &AttemptDir<'_>,
        tree: Option<&str>,
    ) -> Result<Vec<EventKind>, Box<Fault>> {
        let known = self.baselines().now().clone();
        let gates: Vec<_> = self.gates_to_come().into_iter().filter(|(_, gate)| !known.knows(gate)).collect();
        if gates.is_empty() {
            return Ok(Vec::new());
        }
        let checked = self.check_tree(dir, "gates on the base", tree, &gates)?;
        for (gate, checked) in &checked {
            let base = base_gate(gate, checked);
            if let Some(sentence) = said_of_base(&base, gate) {
                dir.reporter.note(Note::Message(SafeText::new(sentence)));
            }
            if is_the_machines(gate, &base) && self.is_asked_for(gate) {
                return Err(Box::new(checked.fault.clone().unwrap_or_else(|| {
                    let mut fault = Fault::new(Reason::DependencyMissing);
                    fault.facts.missing = base.missing.clone();
                    fault
                })));
            }
            self.baselines().now().set(base);
        }
        let tree = tree.map(str::to_owned);
        Ok(vec![EventKind::BaseChecked { tree, gates: self.baselines().now().gates().to_vec() }])
    }

    /// Whether the plan itself names this gate for a phase.
    fn is_asked_for(&self, gate: &Gate) -> bool {
        self.to_come.iter().any(|node| {
            self.phase(*node).settings.gates.is_some() && self.equipment[*node].gates.contains(gate)
        })
    }
}

/// What a person should know of a gate on the base, where it does not simply pass.
fn said_of_base(base: &BaseGate, gate: &Gate) -> Option<String> {
    let name = &base.gate;
    match base.state {
        BaseState::Passed => None,
        BaseState::Failed if gate.is_a_phases_own() => {
            Some(format!("gate {name} fails before the run; its phase must mend that"))
        }
        BaseState::Failed => Some(match base.failures.len() {
            0 => format!(
                "gate {name} fails before the run, and what fails cannot be told apart: while it fails, \
                 phases are not blamed for it (see logs/base.log)"
            ),
            1 => format!("gate {name} fails before the run (1 failure): phases are judged by what they add"),
            n => {
                format!("gate {name} fails before the run ({n} failures): phases are judged by what they add")
            }
        }),
        BaseState::Missing => {
            let tool = base.missing.as_ref().map_or("its tool".to_owned(), |tool| tool.line(80));
            Some(format!("gate {name} is not counted yet: {tool} is missing"))
        }
    }
}

/// What a passed gate on a tree is remembered by.
fn passed_key(tree: &str, gate: &Gate) -> String {
    let whole = format!("gate passes\0{tree}\0{}\0{}", gate.name, gate.check.shown());
    format!("gate-{}", Sha256::of(whole.as_bytes()).hex())
}

fn passed(gate: &Gate) -> Checked {
    Checked {
        gate: gate.name.clone(),
        passed: true,
        fault: None,
        failures: None,
        known_failures: 0,
        flaky: Vec::new(),
        reruns: 0,
        duration: Duration::ZERO,
        exit: Some(0),
        tail: Vec::new(),
        check: gate.check.shown(),
        fix: None,
    }
}
