//! What the events of a plan's run add up to.
//!
//! [`RunRecord`] is a fold: the host applies each event that it has recorded, a later process applies all of them, and both
//! know the same. It must not look at a file, a clock or the plan as it is now.

use backstop_core::{
    Delivery, Event, EventKind, Fault, Outcome, PhaseRecord, PlanRecord, Reason, RunId, SafeText, Timestamp,
    Usage,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where a phase stands, in the words of its state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// It has not begun, or begins again.
    #[default]
    Pending,
    /// An attempt is under way.
    Running,
    /// Its work is in.
    Complete,
    /// It failed for good.
    Failed,
    /// It waits for one that failed for good.
    Blocked,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] =
        [Status::Pending, Status::Running, Status::Complete, Status::Failed, Status::Blocked];

    /// The name as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Complete => "complete",
            Status::Failed => "failed",
            Status::Blocked => "blocked",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The state of a phase that was passed over.
pub(crate) const SKIPPED: &str = "skipped";

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptError {
    /// Which attempt since the run last went on, counted from 1.
    pub attempt: u32,
    /// Which attempt in all, counted from 1.
    pub total: u32,
    /// What it was.
    pub fault: Box<Fault>,
}

/// What a gate said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRecord {
    /// Which gate.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// Tests that failed first and then passed with nothing changed.
    pub flaky: Vec<SafeText>,
    /// How long it took.
    pub duration_ms: u64,
}

/// What is known of one phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhaseProgress {
    /// The phase as the plan has it.
    pub plan: PhaseRecord,
    /// Where it stands.
    pub status: Status,
    /// Whether it was passed over: complete, with nothing done.
    pub skipped: bool,
    /// Attempts since the run last went on.
    pub attempt: u32,
    /// Attempts in all.
    pub total: u32,
    /// What failed, oldest first.
    pub errors: Vec<AttemptError>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When its last attempt began.
    pub attempt_at: Option<Timestamp>,
    /// When it became what it is now.
    pub ended_at: Option<Timestamp>,
    /// How long its attempts took together.
    pub worked_ms: u64,
    /// The numbers of the tasks that were done by its last attempt.
    pub tasks_done: Vec<u32>,
    /// The end of what its last failed attempt wrote.
    pub output: Option<SafeText>,
    /// What its last successful attempt handed in.
    pub delivery: Option<Delivery>,
    /// The tip that its work was about to go onto, while that is not known to have happened.
    pub integrating: Option<Option<String>>,
    /// How often its work did not go together since the run last went on.
    pub conflicts: u32,
    /// Its commits: hash and first line.
    pub commits: Vec<(String, SafeText)>,
    /// What the gates of its last attempt said.
    pub gates: Vec<GateRecord>,
    /// The hash of the phase when it was finished.
    pub finished_hash: Option<String>,
    /// Whether it is no longer in the plan.
    pub gone: bool,
    /// Whether nobody knows how its last attempt ended, and nobody has said anything about it since.
    pub lost: bool,
}

impl PhaseProgress {
    /// Whether it was changed in the plan after it was finished.
    pub fn changed_since(&self) -> bool {
        self.status == Status::Complete
            && self.finished_hash.as_ref().is_some_and(|hash| *hash != self.plan.hash)
    }

    /// What failed last, where it was not put right since.
    pub fn last_error(&self) -> Option<&AttemptError> {
        self.errors.last().filter(|_| self.status != Status::Complete)
    }

    /// Whether work was handed in and is not in yet.
    pub fn is_delivered(&self) -> bool {
        self.status == Status::Running && self.delivery.is_some()
    }
}

/// What the events of a plan's run add up to.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// The run.
    pub run: Option<RunId>,
    /// The plan's path, as it was given.
    pub path: SafeText,
    /// The plan as it was read last.
    pub plan: PlanRecord,
    /// The phases in the plan's order, by id.
    pub order: Vec<String>,
    /// What is known of each, by id; those that are no longer in the plan, too.
    pub phases: BTreeMap<String, PhaseProgress>,
    /// The newest integrated commit.
    pub tip: Option<String>,
    /// How the run halted last, while it has not gone on.
    pub halted: Option<(Reason, String)>,
    /// How the run ended, while it has not gone on.
    pub ended: Option<Outcome>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it began or went on last.
    pub resumed_at: Option<Timestamp>,
    /// How long it went on before that, in all.
    pub active_before: Duration,
    /// When the last event was recorded.
    pub last_at: Option<Timestamp>,
    /// The commit that its first start began from.
    pub first_base: Option<String>,
    /// What agents say that they used, in all: tokens in and out, and what that cost where it is known.
    pub used: Option<Usage>,
    /// How often it went on.
    pub resumed: u32,
    /// How many events there were.
    pub seq: u64,
}

impl RunRecord {
    /// What these events add up to.
    pub fn of(events: &[Event]) -> Self {
        let mut record = Self::default();
        events.iter().for_each(|event| record.apply(event));
        record
    }

    /// A phase, by its place in the plan.
    pub fn phase(&self, at: usize) -> &PhaseProgress {
        static NONE: std::sync::LazyLock<PhaseProgress> = std::sync::LazyLock::new(PhaseProgress::default);
        self.order.get(at).and_then(|id| self.phases.get(id)).unwrap_or(&NONE)
    }

    /// How many phases of the plan stand like this.
    pub fn count(&self, status: Status) -> usize {
        (0..self.order.len()).filter(|at| self.phase(*at).status == status).count()
    }

    /// What one more event makes of it.
    pub fn apply(&mut self, event: &Event) {
        self.run = Some(event.run);
        self.seq = event.seq;
        match &event.kind {
            EventKind::RunStarted { operation, .. } => {
                self.path = operation.clone();
                self.started_at = Some(event.at);
                self.resumed_at = Some(event.at);
            }
            EventKind::PlanLoaded { plan } => self.load(plan),
            EventKind::RunResumed {} => self.resume(event.at),
            EventKind::RunHalted { reason, resume } => self.halted = Some((*reason, resume.clone())),
            EventKind::RunEnded { outcome, .. } => self.ended = Some(*outcome),
            kind => self.apply_to_phase(kind, event.at),
        }
        self.last_at = Some(event.at);
    }

    /// How long it has gone on up to this time; what it stood still does not count.
    pub fn active(&self, now: Timestamp) -> Duration {
        let since = self.resumed_at.map_or(Duration::ZERO, |at| now.since(at));
        self.active_before + since
    }

    fn load(&mut self, plan: &PlanRecord) {
        self.order = plan.phases.iter().map(|phase| phase.id.clone()).collect();
        for progress in self.phases.values_mut() {
            progress.gone = true;
        }
        for phase in &plan.phases {
            let progress = self.phases.entry(phase.id.clone()).or_default();
            progress.plan = phase.clone();
            progress.gone = false;
        }
        self.plan = plan.clone();
        self.tip = self.tip.take().or_else(|| plan.base.clone());
        self.first_base = self.first_base.take().or_else(|| plan.base.clone());
    }

    /// Whatever is not complete begins again: attempts are counted anew, what is known is kept.
    fn resume(&mut self, at: Timestamp) {
        self.resumed += 1;
        self.active_before = self.active(self.last_at.unwrap_or(at));
        self.resumed_at = Some(at);
        self.halted = None;
        self.ended = None;
        for phase in self.phases.values_mut().filter(|phase| phase.status != Status::Complete) {
            // Work that was handed in and not integrated is not done again.
            let delivered = phase.is_delivered();
            if !delivered {
                phase.status = Status::Pending;
            }
            phase.attempt = u32::from(delivered);
            phase.conflicts = 0;
            phase.ended_at = None;
        }
    }

    fn apply_to_phase(&mut self, kind: &EventKind, at: Timestamp) {
        if let EventKind::IntegrationFinished { tip, .. } = kind {
            self.tip = Some(tip.clone());
        }
        let Some(phase) = operation(kind).and_then(|id| self.phases.get_mut(id.raw())) else { return };
        match kind {
            EventKind::AttemptStarted { attempt, .. } => {
                phase.status = Status::Running;
                phase.attempt += 1;
                phase.total = phase.total.max(*attempt);
                phase.started_at.get_or_insert(at);
                phase.attempt_at = Some(at);
                phase.ended_at = None;
                phase.delivery = None;
                phase.integrating = None;
                phase.gates.clear();
                phase.skipped = false;
                phase.lost = false;
            }
            EventKind::AttemptFinished { success, duration_ms, delivery, output, .. } => {
                phase.worked_ms += duration_ms;
                self.used = added(self.used, delivery.as_deref());
                phase.tasks_done =
                    delivery.as_ref().map(|delivery| delivery.tasks_done.clone()).unwrap_or_default();
                phase.output.clone_from(output);
                if *success {
                    phase.delivery = Some(delivery.as_deref().cloned().unwrap_or_default());
                }
            }
            EventKind::AttemptLost { .. } => {
                phase.status = Status::Pending;
                phase.lost = true;
            }
            EventKind::ErrorClassified { attempt, fault, .. } => {
                let (since, total) = (phase.attempt, *attempt);
                phase.errors.push(AttemptError { attempt: since, total, fault: fault.clone() });
            }
            EventKind::DecisionMade { decision, reclassified, .. } => {
                if decision.action.goes_on() {
                    phase.status = Status::Pending;
                }
                if let (Some(error), Some(reason)) = (phase.errors.last_mut(), reclassified) {
                    error.fault.reason = *reason;
                }
            }
            EventKind::GateFinished { gate, passed, flaky, duration_ms, .. } => {
                phase.gates.retain(|known| known.gate != *gate);
                phase.gates.push(GateRecord {
                    gate: gate.clone(),
                    passed: *passed,
                    flaky: flaky.clone(),
                    duration_ms: *duration_ms,
                });
            }
            EventKind::IntegrationStarted { onto, .. } => phase.integrating = Some(onto.clone()),
            EventKind::IntegrationFinished { .. } => phase.integrating = None,
            EventKind::IntegrationConflicted { .. } => {
                phase.integrating = None;
                phase.delivery = None;
                phase.conflicts += 1;
                phase.status = Status::Pending;
            }
            EventKind::CommitMade { sha, subject, .. } => {
                phase.commits.push((sha.clone(), subject.clone().unwrap_or_default()));
            }
            EventKind::StateEntered { state, .. } => {
                phase.lost = false;
                phase.skipped = state == SKIPPED;
                let status = if phase.skipped { Some(Status::Complete) } else { Status::from_name(state) };
                phase.status = status.unwrap_or(phase.status);
                phase.ended_at = Some(at);
                if phase.status == Status::Complete {
                    phase.finished_hash = Some(phase.plan.hash.clone());
                } else if phase.status == Status::Pending {
                    phase.delivery = None;
                    phase.integrating = None;
                    phase.attempt = 0;
                    // Somebody wants it done anew: what failed once is no longer to be told.
                    phase.errors.clear();
                    phase.output = None;
                }
            }
            _ => {}
        }
    }
}

/// What one more attempt makes of what was used.
fn added(before: Option<Usage>, delivery: Option<&Delivery>) -> Option<Usage> {
    let Some(delivery) = delivery.filter(|d| d.tokens_in + d.tokens_out > 0) else { return before };
    let mut sum = before.unwrap_or_default();
    sum.input_tokens += delivery.tokens_in;
    sum.output_tokens += delivery.tokens_out;
    if let Some(millionths) = delivery.cost_millionths {
        #[expect(clippy::cast_precision_loss)] // For people; a dollar more or less in nine billion.
        let dollars = millionths as f64 / 1e6;
        sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + dollars);
    }
    Some(sum)
}

/// What an event is about.
fn operation(kind: &EventKind) -> Option<&SafeText> {
    match kind {
        EventKind::AttemptStarted { operation, .. }
        | EventKind::AttemptFinished { operation, .. }
        | EventKind::AttemptLost { operation, .. }
        | EventKind::ErrorClassified { operation, .. }
        | EventKind::IntegrationStarted { operation, .. }
        | EventKind::IntegrationFinished { operation, .. }
        | EventKind::IntegrationConflicted { operation, .. }
        | EventKind::CommitMade { operation, .. } => Some(operation),
        EventKind::DecisionMade { operation, .. }
        | EventKind::RecoveryAttempted { operation, .. }
        | EventKind::GateFinished { operation, .. }
        | EventKind::StateEntered { operation, .. } => operation.as_ref(),
        _ => None,
    }
}
