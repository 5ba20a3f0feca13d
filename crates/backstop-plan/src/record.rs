//! What the events of a plan's run add up to.
//!
//! [`RunRecord`] is a fold: the host applies each event that it has recorded, a later process
//! applies all of them, and both know the same. Where the run and its phases stand is
//! [`RunProgress`], which any run of nodes has; here is what only a plan has. It must not look at a
//! file, a clock or the plan as it is now.

use backstop_core::{BaseGate, Event, EventKind, Fault, PhaseRecord, PlanRecord, Reason, SafeText};
use backstop_runtime::host::{Fold, NodeRecord, NodeStatus, RunProgress, operation};
use std::collections::{BTreeMap, BTreeSet};

/// What a gate said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRecord {
    /// Which gate.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// Tests that failed first and then passed with nothing changed.
    pub flaky: Vec<SafeText>,
    /// Why it failed, where it did.
    pub reason: Option<Reason>,
    /// Where it passed as no worse than the run's base: how many failures were there already.
    pub known_failures: u64,
    /// How long it took.
    pub duration_ms: u64,
}

impl GateRecord {
    /// Whether it did not count for a phase that is complete all the same: its tool is missing.
    pub fn is_not_counted(&self) -> bool {
        !self.passed && self.reason == Some(Reason::DependencyMissing)
    }

    /// Its name, for people.
    pub fn name(&self) -> SafeText {
        SafeText::new(self.gate.clone())
    }
}

/// A commit: its hash, and the first line of its message.
pub type CommitRecord = (String, SafeText);

/// What only a plan's run knows of a phase.
#[derive(Debug, Clone, Default, PartialEq)]
struct PhaseFacts {
    plan: PhaseRecord,
    commits: Vec<CommitRecord>,
    gates: Vec<GateRecord>,
    finished_hash: Option<String>,
}

impl PhaseFacts {
    fn apply(&mut self, kind: &EventKind, status: NodeStatus) {
        match kind {
            EventKind::AttemptStarted { .. } => self.gates.clear(),
            EventKind::GateFinished { gate, passed, flaky, reason, known_failures, duration_ms, .. } => {
                self.gates.retain(|known| known.gate != *gate);
                self.gates.push(GateRecord {
                    gate: gate.clone(),
                    passed: *passed,
                    flaky: flaky.clone(),
                    reason: *reason,
                    known_failures: *known_failures,
                    duration_ms: *duration_ms,
                });
            }
            EventKind::CommitMade { sha, subject, .. } => {
                self.commits.push((sha.clone(), subject.clone().unwrap_or_default()));
            }
            EventKind::StateEntered { .. } if status == NodeStatus::Complete => {
                self.finished_hash = Some(self.plan.hash.clone());
            }
            _ => {}
        }
    }
}

/// What is known of one phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseProgress<'r> {
    /// The phase as a node: its status, attempts, errors and delivery.
    pub node: &'r NodeRecord,
    /// The phase as the plan has it.
    pub plan: &'r PhaseRecord,
    /// Its commits, oldest first.
    pub commits: &'r [CommitRecord],
    /// What the gates of its last attempt said.
    pub gates: &'r [GateRecord],
    /// The hash of the phase's text when it was completed.
    pub finished_hash: Option<&'r str>,
}

impl PhaseProgress<'_> {
    /// Whether its text was changed in the plan after it was completed.
    pub fn changed_since(&self) -> bool {
        self.node.status == NodeStatus::Complete
            && self.finished_hash.is_some_and(|hash| hash != self.plan.hash)
    }
}

/// What the events of a plan's run add up to.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// Where the run and its phases stand.
    pub progress: RunProgress,
    /// The plan as it was read last.
    pub plan: PlanRecord,
    /// The commit that the run's first start began from.
    pub first_base: Option<String>,
    /// What the gates said of the tree that the run started from.
    pub base_gates: Vec<BaseGate>,
    /// The one commit of all phases, where they were committed as one.
    pub one_commit: Option<CommitRecord>,
    /// Gates that failed on the base in failures that were told apart.
    told_apart: BTreeSet<String>,
    facts: BTreeMap<String, PhaseFacts>,
}

impl Fold for RunRecord {
    fn apply(&mut self, event: &Event) {
        self.progress.apply(event);
        match &event.kind {
            EventKind::PlanLoaded { plan } => self.load(plan),
            EventKind::BaseChecked { gates, .. } => {
                let told_apart = gates.iter().filter(|gate| !gate.failures.is_empty());
                self.told_apart.extend(told_apart.map(|gate| gate.gate.clone()));
                self.base_gates.clone_from(gates);
            }
            EventKind::CommitMade { operation, sha, subject } if *operation == self.progress.operation => {
                self.one_commit = Some((sha.clone(), subject.clone().unwrap_or_default()));
            }
            kind => {
                let Some(id) = operation(kind) else { return };
                let status = self.progress.nodes.get(id.raw()).map(|node| node.status);
                if let (Some(facts), Some(status)) = (self.facts.get_mut(id.raw()), status) {
                    facts.apply(kind, status);
                }
            }
        }
    }

    fn progress(&self) -> &RunProgress {
        &self.progress
    }
}

impl RunRecord {
    /// What these events add up to.
    pub fn of(events: &[Event]) -> Self {
        let mut record = Self::default();
        events.iter().for_each(|event| record.apply(event));
        record
    }

    /// The plan's path, as it was given.
    pub fn path(&self) -> &SafeText {
        &self.progress.operation
    }

    /// How many phases the plan has.
    pub fn len(&self) -> usize {
        self.progress.order.len()
    }

    /// Whether the plan has no phases.
    pub fn is_empty(&self) -> bool {
        self.progress.order.is_empty()
    }

    /// A phase, by its place in the plan. One that is not there is a phase of which nothing is
    /// known.
    pub fn phase(&self, at: usize) -> PhaseProgress<'_> {
        static NONE: std::sync::LazyLock<PhaseFacts> = std::sync::LazyLock::new(PhaseFacts::default);
        let facts = self.progress.order.get(at).and_then(|id| self.facts.get(id)).unwrap_or(&NONE);
        facts.beside(self.progress.node(at))
    }

    /// A phase by its id, also one that is no longer in the plan.
    pub fn phase_of(&self, id: &str) -> Option<PhaseProgress<'_>> {
        Some(self.facts.get(id)?.beside(self.progress.nodes.get(id)?))
    }

    /// The phases in the plan's order.
    pub fn phases(&self) -> impl Iterator<Item = PhaseProgress<'_>> {
        (0..self.len()).map(|at| self.phase(at))
    }

    /// All phases by id, also those that are no longer in the plan.
    pub fn all_phases(&self) -> impl Iterator<Item = PhaseProgress<'_>> {
        self.facts.keys().filter_map(|id| self.phase_of(id))
    }

    /// Whether the failures of a gate that failed on the base were told apart, so that its passing
    /// as no worse says something.
    pub fn tells_failures(&self, gate: &str) -> bool {
        self.told_apart.contains(gate)
    }

    /// The phases that are not complete, by their places in the plan.
    pub fn to_come(&self) -> Vec<usize> {
        (0..self.len()).filter(|at| self.phase(*at).node.status != NodeStatus::Complete).collect()
    }

    /// How many phases of the plan have this status.
    pub fn count(&self, status: NodeStatus) -> usize {
        self.progress.count(status)
    }

    fn load(&mut self, plan: &PlanRecord) {
        for phase in &plan.phases {
            self.facts.entry(phase.id.clone()).or_default().plan = phase.clone();
        }
        self.plan = plan.clone();
        self.first_base = self.first_base.take().or_else(|| plan.base.clone());
    }
}

impl PhaseFacts {
    fn beside<'r>(&'r self, node: &'r NodeRecord) -> PhaseProgress<'r> {
        PhaseProgress {
            node,
            plan: &self.plan,
            commits: &self.commits,
            gates: &self.gates,
            finished_hash: self.finished_hash.as_deref(),
        }
    }
}

/// The one line that says what failed.
pub(crate) fn fault_message(fault: &Fault) -> SafeText {
    fault.cause.clone().unwrap_or_else(|| fault.suggested_action.clone())
}
