//! What each phase asks before an attempt and tells after it: its agent's guard, and the run's
//! budget.
//!
//! The breaker is neither asked nor told: an agent makes many requests and retries them itself, so
//! that the end of an attempt says nothing about one of them.

use crate::allowance::Allowance;
use crate::record::RunRecord;
use crate::workspace::{Equipment, Worker};
use backstop_core::{EventKind, Fault, Name, Reason, Record, RecordError};
use backstop_runtime::admission::client_of;
use backstop_runtime::admission::{
    Admission, BudgetScope, OperationAdmission, OperationLimits, key_of, learn_refusal, model_refused, named,
};
use backstop_runtime::host::{self, AttemptJob, NodeStatus, Refusal, Waiting};
use backstop_runtime::{Project, ProjectError, Recorder};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest wait for a guard that an attempt makes; longer ones are the scheduler's, which has
/// limits for them and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The limits that the phases of a plan share with everything else of this user.
pub(crate) struct PhaseAdmission {
    project: Arc<Project>,
    phases: Vec<OperationAdmission>,
    /// What the run's agents may use in all.
    allowance: Allowance,
}

impl PhaseAdmission {
    /// With a limit of what the run's agents may use in all.
    pub(crate) fn with_allowance(mut self, allowance: Allowance) -> Self {
        self.allowance = allowance;
        self
    }

    /// One for each phase. A budget that was never set is an error.
    pub(crate) fn new(
        project: &Arc<Project>,
        recorder: &Recorder,
        record: &RunRecord,
        equipment: &[Equipment],
        budget: Option<&Name>,
    ) -> Result<Self, ProjectError> {
        let shared = Admission::new(Arc::clone(project));
        let root = project.root.display();
        let phase = |(at, equipment): (usize, &Equipment)| {
            let (provider, client, worker) = match &equipment.worker {
                Worker::Agent { agent, .. } => {
                    (agent.provider.as_ref().and_then(|name| name.parse().ok()), None, agent.name.clone())
                }
                Worker::Command(command) => (None, client_of(&command.shown()), command.shown()),
                Worker::Nobody => (None, None, String::new()),
            };
            let limits = OperationLimits {
                provider,
                client,
                command: String::new(),
                budget: budget.cloned(),
                scope: BudgetScope {
                    run: project.process.parent.unwrap_or_else(|| recorder.run()),
                    task: None,
                },
                operation: worker,
                place: format!("{root}: {} phase {}", record.path().raw(), record.phase(at).plan.id),
                wait_max: WAIT_MAX,
                learns: false,
            };
            shared.operation(limits, None)
        };
        let phases = equipment.iter().enumerate().map(phase).collect::<Result<_, _>>()?;
        Ok(Self { project: Arc::clone(project), phases, allowance: Allowance::default() })
    }

    /// What was learned from the failures of this run, when it has ended.
    pub(crate) fn learn(&self, record: &RunRecord) {
        for (at, admission) in self.phases.iter().enumerate() {
            let node = record.phase(at).node;
            let before = node.total.saturating_sub(node.attempt);
            let faults: Vec<Fault> =
                node.errors.iter().filter(|error| error.total > before).map(|e| (*e.fault).clone()).collect();
            if node.attempt > 0 {
                admission.ended(&faults, node.status == NodeStatus::Complete, node.attempt);
            }
        }
    }
}

/// Events that the host is to record.
#[derive(Default)]
struct Pending(Mutex<Vec<EventKind>>);

impl Record for Pending {
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(kinds);
        Ok(())
    }
}

impl host::Admission for PhaseAdmission {
    fn before(&self, job: &AttemptJob, waiting: Waiting<'_>) -> Result<Vec<EventKind>, Refusal> {
        let Some(phase) = self.phases.get(job.node) else { return Ok(Vec::new()) };
        if let Err(fault) = self.allowance.check(job.used) {
            return Err(Refusal { fault, events: Vec::new() });
        }
        let pending = Pending::default();
        if let Some((provider, left)) = phase.closed_for() {
            waiting(provider.as_str(), left);
        }
        let admitted = phase.admit_blocking(&|| job.stop.requests() > 0, &pending);
        let events = pending.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        match admitted {
            Ok(()) => Ok(events),
            Err(fault) => Err(Refusal { fault, events }),
        }
    }

    fn failed(&self, node: usize, fault: &Fault) -> Vec<EventKind> {
        if fault.reason != Reason::RateLimited {
            return Vec::new();
        }
        // Whoever the failure names has refused, whatever the agent's usual provider is.
        if let (Some(name), Ok(store)) = (named(fault), self.project.limits()) {
            let process = &self.project.process;
            let key = key_of(store, &name, model_refused(fault, None), process, true);
            let learned = learn_refusal(store, &key, fault, false, process.now());
            return learned.ok().flatten().into_iter().collect();
        }
        self.phases.get(node).map(|phase| phase.failed(fault)).unwrap_or_default()
    }

    fn succeeded(&self, node: usize) -> Vec<EventKind> {
        self.phases.get(node).and_then(OperationAdmission::probe_succeeded).into_iter().collect()
    }

    fn frozen(&self) -> Option<Reason> {
        self.project.frozen().map(|freeze| freeze.reason)
    }
}
