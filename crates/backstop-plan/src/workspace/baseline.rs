//! What the gates said of the tree that a run starts from, and what that means for the work of a
//! phase: it is judged by what it makes worse.
//!
//! | on the base | gate of a phase's own section | any other gate (the plan's common one, detected, or in the config) |
//! |---|---|---|
//! | passes | must pass | must pass |
//! | fails | must pass: it is what the phase is for | must not fail in anything new; where failures cannot be told apart the phase is not blamed |
//! | its tool is missing | must pass; where the machine lacks the tool, no phase begins | counts once its tool is there |
//!
//! Pure: it runs nothing.

use backstop_core::{BaseGate, BaseState, Reason, SafeText};
use backstop_work::gate::{Checked, Compared, Gate, compare};

/// How many new failures are named in a cause.
const NAMED_MAX: usize = 5;

/// What the gates said of the run's base.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Baseline {
    gates: Vec<BaseGate>,
}

/// The baselines of a run's tips. What a phase has mended counts against whoever breaks it later; a
/// phase that began from an earlier tip is judged by the baseline of that one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Baselines {
    now: Baseline,
    /// Earlier ones, with the tip that they hold for.
    earlier: Vec<(String, Baseline)>,
}

impl Baselines {
    pub(crate) fn of(gates: Vec<BaseGate>) -> Self {
        Self { now: Baseline::of(gates), earlier: Vec::new() }
    }

    /// The baseline of the run's tip.
    pub(super) fn now(&mut self) -> &mut Baseline {
        &mut self.now
    }

    /// The baseline of a tip. One that is not known is the run's tip, or the tree before the run.
    pub(super) fn at(&self, tip: Option<&str>) -> &Baseline {
        let found = self.earlier.iter().find(|(known, _)| Some(known.as_str()) == tip);
        found.map_or(&self.now, |(_, baseline)| baseline)
    }

    /// The gates said this of the tip itself. Gives all that is known of it, where that is more
    /// than was known before.
    pub(super) fn learn(&mut self, found: &[BaseGate]) -> Option<Vec<BaseGate>> {
        let before = self.now.clone();
        for gate in found {
            self.now.mend(gate);
        }
        (self.now != before).then(|| self.now.gates.clone())
    }

    /// The tip has moved on from `old`, and the gates said this of the new one. Gives all that is
    /// known of the new tip, where that is more than was known before.
    pub(super) fn advance(&mut self, old: &str, found: &[BaseGate]) -> Option<Vec<BaseGate>> {
        let before = self.now.clone();
        let known = self.learn(found)?;
        if !self.earlier.iter().any(|(known, _)| known == old) {
            self.earlier.push((old.to_owned(), before));
        }
        Some(known)
    }
}

/// What a gate's result means for a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It counts as it is.
    Counts,
    /// It fails, and no more than on the base. The sentence says so.
    NoWorse(String),
    /// It does not count: its tool is missing, as it was on the base.
    NotCounted(String),
}

impl Baseline {
    pub(crate) fn of(gates: Vec<BaseGate>) -> Self {
        Self { gates }
    }

    pub(super) fn knows(&self, gate: &Gate) -> bool {
        self.find(gate).is_some()
    }

    pub(super) fn gates(&self) -> &[BaseGate] {
        &self.gates
    }

    fn find(&self, gate: &Gate) -> Option<&BaseGate> {
        let check = gate.check.shown();
        self.gates.iter().find(|known| known.gate == gate.name && known.check.raw() == check)
    }

    /// Replaces what is known of a gate.
    pub(super) fn set(&mut self, new: BaseGate) {
        self.gates.retain(|known| known.gate != new.gate || known.check != new.check);
        self.gates.push(new);
    }

    /// A gate said this of a tree that came in: what does not fail there any more was mended.
    pub(super) fn mend(&mut self, found: &BaseGate) {
        let is_same = |known: &&mut BaseGate| known.gate == found.gate && known.check == found.check;
        let Some(known) = self.gates.iter_mut().find(is_same) else { return };
        match (known.state, found.state) {
            (BaseState::Failed | BaseState::Missing, BaseState::Passed) => *known = found.clone(),
            (BaseState::Failed, BaseState::Failed) if !found.failures.is_empty() => {
                known.failures.retain(|name| found.failures.contains(name));
            }
            _ => {}
        }
    }

    /// What a gate's result on a phase's tree means. A failure that is no worse than the base
    /// becomes a pass with known failures; of one that is worse, only what is new is blamed.
    pub(super) fn judge(&self, gate: &Gate, checked: &mut Checked) -> Standing {
        let Some(base) = self.find(gate).filter(|_| !checked.passed) else { return Standing::Counts };
        let is_own = gate.is_a_phases_own();
        let missing = checked.fault.as_ref().is_some_and(|fault| fault.reason == Reason::DependencyMissing);
        match base.state {
            BaseState::Missing if missing && !is_own => {
                let tool = base.missing.as_ref().map_or("its tool".to_owned(), |tool| tool.line(80));
                Standing::NotCounted(format!("gate {} is not counted: {tool} is missing", gate.name))
            }
            BaseState::Failed if !is_own && !is_interrupted(checked) => self.compared(base, gate, checked),
            _ => Standing::Counts,
        }
    }

    fn compared(&self, base: &BaseGate, gate: &Gate, checked: &mut Checked) -> Standing {
        match compare(&base.failures, checked.failures.as_deref()) {
            Compared::NoWorse { known } => {
                checked.passed = true;
                checked.known_failures = known as u64;
                checked.fault = None;
                let failures = if known == 1 { "failure was" } else { "failures were" };
                Standing::NoWorse(format!(
                    "gate {} is no worse than on the base: {known} {failures} there before",
                    gate.name
                ))
            }
            Compared::Worse(new) => {
                if let Some(fault) = &mut checked.fault {
                    let names: Vec<String> = new.iter().take(NAMED_MAX).map(|name| name.line(120)).collect();
                    let more = if new.len() > NAMED_MAX { " and more" } else { "" };
                    fault.cause = Some(SafeText::new(format!(
                        "new since the base, on which it failed too: {}{more}",
                        names.join(", ")
                    )));
                    if fault.reason == Reason::TestFailure {
                        fault.facts.failed_count = Some(new.len() as u64);
                        fault.facts.failed_tests = new;
                    }
                }
                Standing::Counts
            }
            Compared::Unknown => {
                checked.passed = true;
                checked.known_failures = 1;
                checked.fault = None;
                Standing::NoWorse(format!(
                    "gate {} fails as it did on the base, and its failures cannot be told apart: \
                     the phase is not blamed for them",
                    gate.name
                ))
            }
        }
    }
}

fn is_interrupted(checked: &Checked) -> bool {
    checked.fault.as_ref().is_some_and(|fault| fault.reason == Reason::Interrupted)
}

/// What a gate said of the base, as it is recorded.
pub(super) fn base_gate(gate: &Gate, checked: &Checked) -> BaseGate {
    let reason = checked.fault.as_ref().map(|fault| fault.reason);
    let state = match reason {
        None => BaseState::Passed,
        Some(Reason::DependencyMissing) => BaseState::Missing,
        Some(_) => BaseState::Failed,
    };
    let missing = checked.fault.as_ref().filter(|_| state == BaseState::Missing);
    BaseGate {
        gate: gate.name.clone(),
        check: SafeText::new(gate.check.shown()),
        state,
        reason,
        failures: checked.failures.clone().unwrap_or_default(),
        missing: missing.and_then(|fault| fault.facts.missing.clone()),
    }
}

/// Whether a missing tool is the machine's: no work in a worktree brings it. Tools that a project's
/// own package manager runs, and scripts of the project, come with the work.
pub(super) fn is_the_machines(gate: &Gate, base: &BaseGate) -> bool {
    let Some(missing) = base.missing.as_ref().filter(|_| base.state == BaseState::Missing) else {
        return false;
    };
    let program = gate.check.rough_words().into_iter().next().unwrap_or_default();
    !program.contains('/') && program == missing.raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Fault;
    use backstop_work::CommandLine;
    use backstop_work::gate::Origin;
    use std::time::Duration;

    fn gate(origin: Origin) -> Gate {
        Gate::new("test", CommandLine::Shell("npm test".into()), origin)
    }

    fn checked(reason: Option<Reason>, failures: Option<&[&str]>) -> Checked {
        let names = failures.map(|all| all.iter().map(|name| SafeText::new(*name)).collect());
        Checked {
            gate: "test".into(),
            passed: reason.is_none(),
            fault: reason.map(Fault::new),
            failures: names,
            known_failures: 0,
            flaky: Vec::new(),
            reruns: 0,
            duration: Duration::ZERO,
            exit: None,
            tail: Vec::new(),
            check: "npm test".into(),
            fix: None,
        }
    }

    fn baseline(reason: Option<Reason>, failures: Option<&[&str]>) -> Baseline {
        Baseline::of(vec![base_gate(&gate(Origin::Config), &checked(reason, failures))])
    }

    #[test]
    fn a_phase_is_judged_by_what_got_worse() {
        use Reason::{CompileError, DependencyMissing, Interrupted, TestFailure};
        let red = Some(TestFailure);
        let cases: [(Baseline, Origin, Checked, bool, bool); 11] = [
            // base, gate of, found, counts, passed
            (baseline(None, None), Origin::Config, checked(red, Some(&["a"])), true, false),
            (baseline(red, Some(&["a"])), Origin::Config, checked(red, Some(&["a"])), false, true),
            (baseline(red, Some(&["a"])), Origin::Config, checked(red, Some(&["b"])), true, false),
            (baseline(red, None), Origin::Config, checked(red, Some(&["b"])), false, true),
            (
                baseline(red, Some(&["a"])),
                Origin::Config,
                checked(Some(CompileError), Some(&["error"])),
                true,
                false,
            ),
            // What a phase's own section asks for must pass, what the plan asks of all need not.
            (baseline(red, Some(&["a"])), Origin::Plan, checked(red, Some(&["a"])), true, false),
            (baseline(red, Some(&["a"])), Origin::PlanWide, checked(red, Some(&["a"])), false, true),
            (baseline(red, Some(&["a"])), Origin::PlanWide, checked(red, Some(&["b"])), true, false),
            (
                baseline(Some(DependencyMissing), None),
                Origin::Config,
                checked(Some(DependencyMissing), None),
                false,
                false,
            ),
            (baseline(Some(DependencyMissing), None), Origin::Config, checked(red, None), true, false),
            (baseline(red, None), Origin::Config, checked(Some(Interrupted), None), true, false),
        ];
        for (at, (base, origin, mut found, counts, passed)) in cases.into_iter().enumerate() {
            let standing = base.judge(&gate(origin), &mut found);
            assert_eq!(standing == Standing::Counts, counts, "case {at}: {standing:?}");
            assert_eq!(found.passed, passed, "case {at}");
        }
    }

    #[test]
    fn what_was_mended_counts_against_whoever_breaks_it_later() {
        let red = Some(Reason::TestFailure);
        let known = |reason, failures| base_gate(&gate(Origin::Config), &checked(reason, failures));
        let mut all = Baselines::of(vec![known(red, Some(&["a", "b"]))]);
        let blamed = |baseline: &Baseline, failures: &[&str]| {
            let mut found = checked(red, Some(failures));
            baseline.judge(&gate(Origin::Config), &mut found) == Standing::Counts
        };
        assert!(!blamed(all.at(Some("t0")), &["a", "b"]));
        // A phase mends `a`; `b` fails still.
        let after = all.advance("t0", &[known(red, Some(&["b"]))]).unwrap();
        assert_eq!(after[0].failures, [SafeText::new("b")]);
        assert!(blamed(all.at(Some("t1")), &["a", "b"]), "broken again");
        assert!(!blamed(all.at(Some("t1")), &["b"]));
        assert!(!blamed(all.at(Some("t0")), &["a", "b"]), "it began before that was mended");
        // The next one mends everything.
        assert!(all.advance("t1", &[known(None, None)]).is_some());
        assert!(blamed(all.at(Some("t2")), &["b"]));
        assert!(!blamed(all.at(Some("t1")), &["b"]));
        assert!(all.advance("t2", &[known(None, None)]).is_none(), "nothing new");
    }

    #[test]
    fn only_what_is_new_is_blamed() {
        let mut found = checked(Some(Reason::TestFailure), Some(&["a", "b"]));
        baseline(Some(Reason::TestFailure), Some(&["a"])).judge(&gate(Origin::Config), &mut found);
        let fault = found.fault.unwrap();
        assert_eq!(fault.facts.failed_tests, [SafeText::new("b")]);
        assert!(fault.cause.unwrap().raw().contains("new since the base"));
    }

    #[test]
    fn a_tool_of_the_projects_own_can_come_with_the_work() {
        let missing = |tool: &str| BaseGate {
            gate: "lint".into(),
            check: SafeText::default(),
            state: BaseState::Missing,
            reason: None,
            failures: Vec::new(),
            missing: Some(SafeText::new(tool)),
        };
        let cases = [
            ("golangci-lint run", "golangci-lint", true),
            ("npx --no-install eslint .", "eslint", false),
            ("./scripts/check.sh", "./scripts/check.sh", false),
        ];
        for (line, tool, machines) in cases {
            let gate = Gate::new("lint", CommandLine::Shell(line.into()), Origin::Plan);
            assert_eq!(is_the_machines(&gate, &missing(tool)), machines, "{line}");
        }
    }
}
