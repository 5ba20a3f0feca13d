//! What each phase asks before an attempt and tells after it: its agent's guard, and the run's
//! budget.
//!
//! The breaker is neither asked nor told: an agent makes many requests and retries them itself, so
//! that the end of an attempt says nothing about one of them.

use crate::allowance::Allowance;
use crate::record::RunRecord;
use crate::workspace::{Equipment, Worker};
use backstop_core::{EventKind, Experience, Fault, Name, Reason, Record, RecordError, Timestamp, shell};
use backstop_runtime::admission::client_of;
use backstop_runtime::admission::{
    Admission, BudgetScope, OperationAdmission, OperationLimits, key_of, learn_refusal, model_refused, named,
};
use backstop_runtime::host::{self, AttemptJob, NodeStatus, Refusal, Waiting};
use backstop_runtime::{Project, ProjectError, Recorder};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest wait for a guard that an attempt makes; longer ones are the scheduler's, which has
/// limits for them and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a worker that does not say when its limit ends is not asked to take over.
const LIMITED_FOR: Duration = Duration::from_secs(15 * 60);

/// The limits that the phases of a plan share with everything else of this user.
pub(crate) struct PhaseAdmission {
    project: Arc<Project>,
    phases: Vec<PhaseWorkers>,
    /// How many attempts each phase had in all before the run was started or resumed.
    attempts_before: Vec<u32>,
    /// What the run's agents may use in all.
    allowance: Allowance,
    /// How long a limit that only a sentence states closes a guard: as long as phases wait for one.
    sentence_max: Duration,
}

/// The workers of one phase: its own, and those that may take over.
struct PhaseWorkers {
    workers: Vec<WorkerLimits>,
    /// Which of them has the work.
    current: AtomicUsize,
}

/// What a worker asks before an attempt.
struct WorkerLimits {
    name: String,
    admission: OperationAdmission,
    /// Until when it said itself that it is limited: not every worker has a guard.
    limited_until: Mutex<Option<Timestamp>>,
}

impl PhaseWorkers {
    fn find(&self, name: Option<&str>) -> usize {
        name.and_then(|name| self.workers.iter().position(|worker| worker.name == name)).unwrap_or(0)
    }

    fn current(&self) -> &WorkerLimits {
        let at = self.current.load(Ordering::Relaxed);
        &self.workers[at.min(self.workers.len() - 1)]
    }
}

impl WorkerLimits {
    fn note_limit(&self, until: Timestamp) {
        *self.limited_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    fn is_limited(&self, now: Timestamp) -> bool {
        let until = *self.limited_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| until > now) || self.admission.closed_for().is_some()
    }
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
        let policy = project.config.policy("phase")?;
        let sentence_max = policy.wait_max;
        let worker = |at: usize, worker: &Worker| -> Result<WorkerLimits, ProjectError> {
            let (provider, client, name, command) = match worker {
                Worker::Agent { agent, model } => {
                    let provider = agent.provider.as_ref().and_then(|name| name.parse().ok());
                    // A limit of one model holds for those who ask for it.
                    let command =
                        model.as_ref().map(|model| shell::line([agent.name.as_str(), "--model", model]));
                    (provider, None, agent.name.clone(), command.unwrap_or_default())
                }
                Worker::Command(command) => {
                    (None, client_of(&command.shown()), command.shown(), String::new())
                }
                Worker::Nobody => (None, None, String::new(), String::new()),
            };
            let limits = OperationLimits {
                provider,
                client,
                command,
                budget: budget.cloned(),
                scope: BudgetScope {
                    run: project.process.parent.unwrap_or_else(|| recorder.run()),
                    task: None,
                },
                operation: name.clone(),
                place: format!("{root}: {} phase {}", record.path().raw(), record.phase(at).plan.id),
                wait_max: WAIT_MAX,
                learns: policy.learn,
            };
            Ok(WorkerLimits {
                name,
                admission: shared.operation(limits, None)?.with_sentence_max(sentence_max),
                limited_until: Mutex::default(),
            })
        };
        let phase = |(at, equipment): (usize, &Equipment)| {
            let others = equipment.fallbacks.iter().map(|agent| equipment.worker(Some(&agent.name)));
            let workers = std::iter::once(equipment.worker.clone()).chain(others);
            let workers = workers.map(|of| worker(at, &of)).collect::<Result<_, _>>()?;
            Ok::<_, ProjectError>(PhaseWorkers { workers, current: AtomicUsize::new(0) })
        };
        let phases = equipment.iter().enumerate().map(phase).collect::<Result<_, _>>()?;
        let attempts_before = (0..equipment.len()).map(|at| record.phase(at).node.total).collect();
        let allowance = Allowance::default();
        Ok(Self { project: Arc::clone(project), phases, attempts_before, allowance, sentence_max })
    }

    /// What was learned from the failures since the run was started or resumed, when it has ended.
    /// What failed before that was learned then.
    pub(crate) fn learn(&self, record: &RunRecord) {
        for (at, (workers, before)) in self.phases.iter().zip(&self.attempts_before).enumerate() {
            let node = record.phase(at).node;
            let faults: Vec<Fault> = node
                .errors
                .iter()
                .filter(|error| error.total > *before)
                .map(|e| (*e.fault).clone())
                .collect();
            let attempts = node.total.saturating_sub(*before);
            if attempts > 0 {
                let succeeded = node.status == NodeStatus::Complete && !node.skipped;
                workers.current().admission.ended(&faults, succeeded, attempts);
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
        let Some(workers) = self.phases.get(job.node) else { return Ok(Vec::new()) };
        workers.current.store(workers.find(job.worker.as_deref()), Ordering::Relaxed);
        let phase = &workers.current().admission;
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
        let is_limit = matches!(fault.reason, Reason::RateLimited | Reason::QuotaExhausted);
        if let Some(worker) = self.phases.get(node).map(PhaseWorkers::current).filter(|_| is_limit) {
            let now = self.project.process.now();
            let left = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            worker.note_limit(now.after(left.unwrap_or(LIMITED_FOR)));
        }
        if fault.reason != Reason::RateLimited {
            return Vec::new();
        }
        // Whoever the failure names has refused, whatever the agent's usual provider is.
        if let (Some(name), Ok(store)) = (named(fault), self.project.limits()) {
            let process = &self.project.process;
            let asked = self.phases.get(node).and_then(|phase| phase.current().admission.asked_model());
            let key = key_of(store, &name, model_refused(fault, asked), process, true);
            let learned = learn_refusal(store, &key, fault, false, self.sentence_max, process.now());
            return learned.ok().flatten().into_iter().collect();
        }
        self.phases.get(node).map(|phase| phase.current().admission.failed(fault)).unwrap_or_default()
    }

    fn succeeded(&self, node: usize) -> Vec<EventKind> {
        let worker = self.phases.get(node).map(|phase| &phase.current().admission);
        worker.and_then(OperationAdmission::probe_succeeded).into_iter().collect()
    }

    fn experience(&self, node: usize, fault: &Fault) -> Option<Experience> {
        self.phases.get(node)?.current().admission.experience(fault)
    }

    fn alternative(&self, node: usize, worker: Option<&str>) -> Option<String> {
        let phase = self.phases.get(node)?;
        let (now, current) = (self.project.process.now(), phase.find(worker));
        let others = phase.workers.iter().enumerate().filter(|(at, _)| *at != current);
        let free = others.map(|(_, worker)| worker).find(|worker| !worker.is_limited(now))?;
        Some(free.name.clone())
    }

    fn frozen(&self) -> Option<Reason> {
        self.project.frozen().map(|freeze| freeze.reason)
    }
}
