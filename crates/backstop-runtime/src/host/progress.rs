//! What the events of a run add up to, as far as the host needs it: its nodes, and where each
//! stands.
//!
//! [`RunProgress`] is a fold: the host applies each event that it has recorded, a later process
//! applies all of them, and both know the same. A surface that needs to know more has a fold of its
//! own that contains this one ([`Fold`]). It must not look at a file or a clock.

use super::nodes::{NodeSpec, NodesError, graph};
use super::sessions::AgentSession;
use super::waits::{NodeWait, RunWaits};
use backstop_core::{
    Action, Delivery, Event, EventKind, Fault, LimitWait, Outcome, Policy, Reason, Rules, RunId, SafeText,
    Schedule, Timestamp, Usage,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// State that is the fold of a run's events.
pub trait Fold {
    /// What one more event makes of it.
    fn apply(&mut self, event: &Event);
    /// The part that the host needs.
    fn progress(&self) -> &RunProgress;
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeStatus {
    /// It has not begun, or begins again.
    #[default]
    Pending,
    /// An attempt is under way, or its work is being integrated.
    Running,
    /// It is complete, and its work is integrated.
    Complete,
    /// It failed for good.
    Failed,
    /// It waits for one that failed for good.
    Blocked,
}

impl NodeStatus {
    /// All of them.
    pub const ALL: [NodeStatus; 5] = [
        NodeStatus::Pending,
        NodeStatus::Running,
        NodeStatus::Complete,
        NodeStatus::Failed,
        NodeStatus::Blocked,
    ];

    /// The name in events and files.
    pub fn name(self) -> &'static str {
        match self {
            NodeStatus::Pending => "pending",
            NodeStatus::Running => "running",
            NodeStatus::Complete => "complete",
            NodeStatus::Failed => "failed",
            NodeStatus::Blocked => "blocked",
        }
    }

    /// The status of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The state, in a `state.entered` event, of a node that was skipped: complete, with nothing done.
pub const SKIPPED: &str = "skipped";

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptError {
    /// Which attempt since the run was last started or resumed, counted from 1.
    pub attempt: u32,
    /// Which attempt in all, counted from 1.
    pub total: u32,
    /// What failed.
    pub fault: Box<Fault>,
}

/// What is known of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeRecord {
    /// The node as it was added, or as it was last read.
    pub spec: NodeSpec,
    /// Where it stands.
    pub status: NodeStatus,
    /// Whether it was skipped: complete, with nothing done.
    pub skipped: bool,
    /// Attempts since the run was last started or resumed.
    pub attempt: u32,
    /// Attempts in all.
    pub total: u32,
    /// What failed, oldest first.
    pub errors: Vec<AttemptError>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When its last attempt began.
    pub attempt_at: Option<Timestamp>,
    /// When it got the status that it has.
    pub ended_at: Option<Timestamp>,
    /// How long its attempts took together.
    pub worked_ms: u64,
    /// Whether its last attempt is known to have ended, well or not.
    pub attempt_ended: bool,
    /// The numbers of the tasks that its last attempt has done.
    pub tasks_done: Vec<u32>,
    /// The end of what its last failed attempt wrote.
    pub output: Option<SafeText>,
    /// What its last successful attempt delivered.
    pub delivery: Option<Delivery>,
    /// The tip that its work was about to be integrated onto, while that is not known to have
    /// happened.
    pub integrating: Option<Option<String>>,
    /// How often its work was in conflict since the run was last started or resumed.
    pub conflicts: u32,
    /// Whether it is no longer one of the run's nodes.
    pub gone: bool,
    /// Whether nobody knows how its last attempt ended, and nobody has said anything about it
    /// since.
    pub lost: bool,
    /// The last attempt of which nobody knows how it ended.
    pub lost_attempt: Option<u32>,
    /// The session that its agent used last.
    pub session: Option<AgentSession>,
    /// What its attempts used together, failed ones included, as far as agents say so.
    pub used: Option<Usage>,
    /// What it waits for, while it waits for a rate limit.
    pub wait: Option<NodeWait>,
    /// Who works on it in place of its own worker, since that one is limited.
    pub worker: Option<String>,
}

impl NodeRecord {
    /// What failed last, where the node has not been completed since.
    pub fn last_error(&self) -> Option<&AttemptError> {
        self.errors.last().filter(|_| self.status != NodeStatus::Complete)
    }

    /// Whether its work was delivered and is not integrated yet.
    pub fn is_delivered(&self) -> bool {
        self.status == NodeStatus::Running && self.delivery.is_some()
    }

    /// Whether an attempt began and nobody knows how it ended. A failed attempt about which nothing
    /// was decided any more is not cut off: it is known how it ended.
    pub fn is_cut_off(&self) -> bool {
        self.status == NodeStatus::Running && !self.attempt_ended
    }

    /// What one event about this node makes of it.
    fn apply(&mut self, kind: &EventKind, at: Timestamp) {
        match kind {
            EventKind::AttemptStarted { attempt, .. } => {
                self.status = NodeStatus::Running;
                self.attempt += 1;
                self.total = self.total.max(*attempt);
                self.started_at.get_or_insert(at);
                self.attempt_at = Some(at);
                self.ended_at = None;
                self.attempt_ended = false;
                self.delivery = None;
                self.integrating = None;
                self.skipped = false;
                self.lost = false;
                self.wait = None;
            }
            EventKind::AttemptFinished { attempt, success, duration_ms, delivery, output, .. } => {
                if let Some(usage) = usage(kind) {
                    self.used = Some(self.used.unwrap_or_default().plus(usage));
                    if let Some(session) = self.session.as_mut().filter(|session| session.attempt == *attempt)
                    {
                        session.used = session.used.plus(usage);
                    }
                }
                self.attempt_ended = true;
                self.worked_ms += duration_ms;
                self.tasks_done =
                    delivery.as_ref().map(|delivery| delivery.tasks_done.clone()).unwrap_or_default();
                self.output.clone_from(output);
                if *success {
                    self.delivery = Some(delivery.as_deref().cloned().unwrap_or_default());
                }
            }
            EventKind::AttemptLost { attempt, .. } => {
                self.status = NodeStatus::Pending;
                self.lost = true;
                self.lost_attempt = Some(*attempt);
            }
            EventKind::SessionStarted { attempt, agent, session_id, folder, .. } => {
                let (id, folder) = (session_id.raw().to_owned(), folder.as_ref());
                let before = self.session.take().filter(|known| known.id == id && known.agent == *agent);
                self.session = Some(AgentSession {
                    agent: agent.clone(),
                    id,
                    folder: folder.map(|folder| folder.raw().to_owned()).unwrap_or_default(),
                    attempt: *attempt,
                    continued: before
                        .as_ref()
                        .is_some_and(|known| known.attempt != *attempt || known.continued),
                    used: before.as_ref().map(|known| known.used).unwrap_or_default(),
                    begun: before.map_or(at, |known| known.begun),
                });
            }
            EventKind::ErrorClassified { attempt, fault, .. } => {
                let (since, total) = (self.attempt, *attempt);
                self.errors.push(AttemptError { attempt: since, total, fault: fault.clone() });
            }
            EventKind::DecisionMade { decision, reclassified, .. } => {
                if decision.action.goes_on() {
                    self.status = NodeStatus::Pending;
                }
                if let Action::Fallback { to } = &decision.action {
                    self.worker = Some(to.clone());
                }
                if let (Some(error), Some(reason)) = (self.errors.last_mut(), reclassified) {
                    *error.fault = error.fault.as_ref().clone().renamed(*reason);
                }
            }
            EventKind::IntegrationStarted { onto, .. } => self.integrating = Some(onto.clone()),
            EventKind::IntegrationFinished { .. } => self.integrating = None,
            EventKind::IntegrationConflicted { .. } => {
                self.integrating = None;
                self.delivery = None;
                self.conflicts += 1;
                self.status = NodeStatus::Pending;
            }
            EventKind::StateEntered { state, .. } => self.enter(state, at),
            _ => {}
        }
    }

    fn enter(&mut self, state: &str, at: Timestamp) {
        self.lost = false;
        self.wait = None;
        self.skipped = state == SKIPPED;
        let status = if self.skipped { Some(NodeStatus::Complete) } else { NodeStatus::from_name(state) };
        self.status = status.unwrap_or(self.status);
        self.ended_at = Some(at);
        if self.status == NodeStatus::Pending {
            self.delivery = None;
            self.integrating = None;
            self.attempt = 0;
            // Somebody wants it done anew: the next attempt is not told what failed before that.
            self.session = None;
            self.lost_attempt = None;
            self.errors.clear();
            self.output = None;
        }
    }

    /// The run is resumed: attempts are counted anew, what is known is kept.
    fn resume(&mut self) {
        if self.status == NodeStatus::Complete {
            return;
        }
        // Work that was delivered and not integrated is not done again.
        let delivered = self.is_delivered();
        if !delivered {
            self.status = NodeStatus::Pending;
        }
        self.attempt = u32::from(delivered);
        // Its own worker may be back; if it is not, that is found out before anything begins.
        self.worker = None;
        self.conflicts = 0;
        self.ended_at = None;
    }
}

/// What the events of a run add up to.
#[derive(Debug, Clone, Default)]
pub struct RunProgress {
    /// The run.
    pub run: Option<RunId>,
    /// What is run: a plan's path, as it was given.
    pub operation: SafeText,
    /// The nodes by id, in their order. The place of a node is its number in the [`Schedule`].
    pub order: Vec<String>,
    /// What is known of each node, by id; of those that are no longer among the run's nodes, too.
    pub nodes: BTreeMap<String, NodeRecord>,
    /// What all attempts used together, as far as agents say so.
    used: Option<Usage>,
    /// The newest integrated commit.
    pub tip: Option<String>,
    /// Why the run halted and the command that resumes it, while it was not resumed.
    pub halted: Option<(Reason, String)>,
    /// How the run ended, while it was not resumed.
    pub ended: Option<Outcome>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it was last started or resumed.
    pub resumed_at: Option<Timestamp>,
    /// How long it was active before that, in all.
    pub active_before: Duration,
    /// When the last event was recorded.
    pub last_at: Option<Timestamp>,
    /// How often it was resumed.
    pub resumed: u32,
    /// Whether nodes that failed for good stay so when the run is resumed, as in a campaign: only
    /// another plan or a person opens them again.
    pub keeps_blocked: bool,
    /// How many events there were: the version of the run's log.
    pub seq: u64,
    /// Its waits for rate limits.
    pub waits: RunWaits,
    /// When it is to start, while it has not.
    pub starts_at: Option<Timestamp>,
}

/// The surface whose runs work around what is blocked.
pub const CAMPAIGN: &str = "campaign";

impl Fold for RunProgress {
    fn apply(&mut self, event: &Event) {
        self.run = Some(event.run);
        self.seq = event.seq;
        match &event.kind {
            EventKind::RunStarted { operation, .. } => {
                self.operation = operation.clone();
                self.keeps_blocked = event.surface == CAMPAIGN;
                self.started_at = Some(event.at);
                self.resumed_at = Some(event.at);
            }
            EventKind::RunResumed {} => self.resume(event.at),
            EventKind::RunHalted { reason, resume } => {
                self.halted = Some((*reason, resume.clone()));
                self.nobody_waits(event.at);
            }
            EventKind::RunEnded { outcome, .. } => {
                self.ended = Some(*outcome);
                // One that was only cut off goes on with its wait.
                if *outcome != Outcome::Lost {
                    self.nobody_waits(event.at);
                }
            }
            EventKind::WaitStarted { operation: None, wait_ms, .. } => {
                self.starts_at = Some(event.at.after(Duration::from_millis(*wait_ms)));
            }
            kind => {
                self.apply_waits(kind, event.at);
                self.apply_nodes(kind);
                self.apply_to_node(kind, event.at);
            }
        }
        self.last_at = Some(event.at);
    }

    fn progress(&self) -> &RunProgress {
        self
    }
}

impl RunProgress {
    /// A node, by its number. One that is not there is a node of which nothing is known.
    pub fn node(&self, at: usize) -> &NodeRecord {
        static NONE: std::sync::LazyLock<NodeRecord> = std::sync::LazyLock::new(NodeRecord::default);
        self.order.get(at).and_then(|id| self.nodes.get(id)).unwrap_or(&NONE)
    }

    /// The number of a node.
    pub fn number(&self, id: &str) -> Option<usize> {
        self.order.iter().position(|known| known == id)
    }

    /// How many of the run's nodes have this status.
    pub fn count(&self, status: NodeStatus) -> usize {
        (0..self.order.len()).filter(|at| self.node(*at).status == status).count()
    }

    /// How many attempts there were in all.
    pub fn attempts(&self) -> u32 {
        self.nodes.values().map(|node| node.total).sum()
    }

    /// What all attempts used together, as far as agents say so.
    pub fn used(&self) -> Option<Usage> {
        self.used
    }

    /// How long the run has been active up to `now`: the time between a halt and a resume does not
    /// count.
    pub fn active(&self, now: Timestamp) -> Duration {
        let since = self.resumed_at.map_or(Duration::ZERO, |at| now.since(at));
        self.active_before + since
    }

    /// The schedule of the nodes as they stand: complete ones are complete, everything else is
    /// pending.
    pub fn schedule(
        &self,
        rules: Rules,
        policy: &Arc<Policy>,
        disabled: bool,
    ) -> Result<Schedule, NodesError> {
        let graph = graph(self)?;
        let complete: Vec<bool> =
            (0..self.order.len()).map(|at| self.node(at).status == NodeStatus::Complete).collect();
        let repeatable = |at: usize| self.node(at).spec.repeatable;
        let (begun, forgiven) = self.waits.counted();
        let mut schedule = Schedule::new(Arc::new(graph), rules, policy, &complete, &repeatable)
            .with_blocked(&self.set_aside())
            .disabled(disabled)
            .after_waits(begun, forgiven);
        let now = self.resumed_at.unwrap_or_default();
        for at in 0..self.order.len() {
            let Some(wait) = self.node(at).wait.filter(|wait| !wait.left(now).is_zero()) else { continue };
            let known = self.waits.get(wait.number);
            let provider = known.and_then(|known| known.provider.as_ref());
            let limit = LimitWait::name(provider, known.and_then(|known| known.model.as_ref()));
            schedule.still_waiting(at, LimitWait { number: wait.number, limit, until: wait.left(now) });
        }
        Ok(schedule)
    }

    /// The nodes that failed for good and stay so.
    fn set_aside(&self) -> Vec<usize> {
        let is_blocked =
            |at: &usize| matches!(self.node(*at).status, NodeStatus::Failed | NodeStatus::Blocked);
        (0..self.order.len()).filter(|_| self.keeps_blocked).filter(is_blocked).collect()
    }

    fn apply_waits(&mut self, kind: &EventKind, at: Timestamp) {
        if matches!(kind, EventKind::AttemptStarted { .. } | EventKind::BaseChecked { .. }) {
            self.starts_at = None;
        }
        let Some(id) = operation(kind) else { return };
        match kind {
            EventKind::WaitStarted { .. } => {
                let wait = self.waits.started(id.raw(), kind, at);
                if let Some(node) = self.nodes.get_mut(id.raw()) {
                    node.wait = wait;
                }
            }
            EventKind::AttemptStarted { .. } | EventKind::StateEntered { .. } => {
                self.waits.ended(id.raw(), at);
            }
            _ => {}
        }
    }

    fn nobody_waits(&mut self, at: Timestamp) {
        self.waits.all_ended(at);
        self.starts_at = None;
        self.nodes.values_mut().for_each(|node| node.wait = None);
    }

    /// Whether an event of this kind changes which nodes the run has.
    pub(super) fn brings_nodes(kind: &EventKind) -> bool {
        matches!(kind, EventKind::PlanLoaded { .. })
    }

    /// Applies an event that brings nodes; others change nothing.
    pub(super) fn apply_nodes(&mut self, kind: &EventKind) {
        let EventKind::PlanLoaded { plan } = kind else { return };
        self.order = plan.phases.iter().map(|phase| phase.id.clone()).collect();
        for node in self.nodes.values_mut() {
            node.gone = true;
        }
        for phase in &plan.phases {
            let node = self.nodes.entry(phase.id.clone()).or_default();
            node.spec = NodeSpec::of(phase);
            node.gone = false;
        }
        self.tip = self.tip.take().or_else(|| plan.base.clone());
    }

    fn resume(&mut self, at: Timestamp) {
        self.resumed += 1;
        if self.halted.is_some() {
            self.waits.forgive();
        }
        self.starts_at = None;
        self.active_before = self.active(self.last_at.unwrap_or(at));
        self.resumed_at = Some(at);
        self.halted = None;
        self.ended = None;
        let keeps = self.keeps_blocked;
        let is_kept =
            |node: &&mut NodeRecord| keeps && matches!(node.status, NodeStatus::Failed | NodeStatus::Blocked);
        self.nodes.values_mut().filter(|node| !is_kept(node)).for_each(NodeRecord::resume);
    }

    fn apply_to_node(&mut self, kind: &EventKind, at: Timestamp) {
        if let EventKind::IntegrationFinished { tip, .. } = kind {
            self.tip = Some(tip.clone());
        }
        let node = operation(kind).and_then(|id| self.nodes.get_mut(id.raw()));
        if let Some(node) = node {
            let usage = usage(kind);
            self.used = self.used.map_or(usage, |used| Some(usage.map_or(used, |usage| used.plus(usage))));
            node.apply(kind, at);
        }
    }
}

/// What the attempt used that this event ends, as far as its agent says so.
fn usage(kind: &EventKind) -> Option<Usage> {
    match kind {
        EventKind::AttemptFinished { delivery, .. } => delivery.as_ref()?.usage(),
        _ => None,
    }
}

/// The operation that an event is about: in a run of nodes, the id of one.
pub fn operation(kind: &EventKind) -> Option<&SafeText> {
    match kind {
        EventKind::AttemptStarted { operation, .. }
        | EventKind::AttemptFinished { operation, .. }
        | EventKind::AttemptLost { operation, .. }
        | EventKind::SessionStarted { operation, .. }
        | EventKind::ErrorClassified { operation, .. }
        | EventKind::IntegrationStarted { operation, .. }
        | EventKind::IntegrationFinished { operation, .. }
        | EventKind::IntegrationConflicted { operation, .. }
        | EventKind::CommitMade { operation, .. } => Some(operation),
        EventKind::DecisionMade { operation, .. }
        | EventKind::RecoveryAttempted { operation, .. }
        | EventKind::GateFinished { operation, .. }
        | EventKind::WaitStarted { operation, .. }
        | EventKind::StateEntered { operation, .. } => operation.as_ref(),
        _ => None,
    }
}
