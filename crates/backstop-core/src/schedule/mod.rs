//! The scheduler: which node of a [`Graph`] may be attempted now, what follows from a failure, and
//! when it is over.
//!
//! Pure. [`Schedule::decide`] says what follows from a [`Command`], as [`Happening`]s;
//! [`Schedule::evolve`] is what each of them makes of the state, so that the state is the fold of
//! what happened. A host carries out what happened and feeds commands back. It must not wait, run
//! or record anything. Each node has an attempt machine of its own; here is what lies between
//! nodes: what waits for what, who runs beside whom, who is retried when, what a failure blocks.
//!
//! The graph can grow while it is worked through: [`Schedule::grow`] adds nodes and dependencies
//! and keeps where every node stands. [`Schedule::merge`] also changes, drops and re-opens nodes,
//! all of it or nothing.
//!
//! With [`OnFailure::BlockNode`] a node that failed for good is set aside and the others go on. How
//! that ends is derived from where the nodes stand: [`End::Blocked`] where everything else is
//! complete, [`End::Stuck`] where others wait for what was set aside.
//!
//! The three types that matter: [`Schedule`], [`Command`] and [`Happening`].

mod graph;
mod merge;
#[cfg(test)]
mod merge_properties;
#[cfg(test)]
mod properties;
mod waits;

pub use graph::{Graph, GraphError, Growth, NewNode};
pub use merge::{Merge, MergeError, NodeChange};
pub use waits::LimitWait;

use crate::{Action, Dispatch, Failure, How, Machine, Policy, Reason, Verdict};
use std::sync::Arc;
use std::time::Duration;
use waits::LimitWaits;

/// Which nodes may run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parallel {
    /// Those that are declared to.
    #[default]
    Declared,
    /// All whose dependencies are complete.
    Auto,
}

/// When a node that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryWhen {
    /// When those that were running at its failure have ended their attempts.
    #[default]
    AfterSiblings,
    /// At once.
    Immediate,
}

/// What a node that failed for good means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Nothing begins any more.
    #[default]
    HaltRun,
    /// The node is set aside and everything that does not wait for it goes on. Reasons for which
    /// the policy halts a run halt it all the same.
    BlockNode,
}

/// How a graph is worked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How many run at once, at least 1.
    pub jobs: usize,
    /// Which may.
    pub parallel: Parallel,
    /// When a retry begins.
    pub retry: RetryWhen,
    /// What follows when a node has failed for good.
    pub on_failure: OnFailure,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            jobs: 1,
            parallel: Parallel::default(),
            retry: RetryWhen::default(),
            on_failure: OnFailure::default(),
        }
    }
}

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeState {
    /// It has not begun.
    Pending,
    /// An attempt is under way.
    Running,
    /// It is tried again.
    Waiting {
        /// Not before this, in time since the run began.
        not_before: Duration,
        /// And not before these have ended their attempts.
        siblings: Vec<usize>,
    },
    /// It is complete.
    Complete,
    /// It failed for good.
    Failed,
    /// It waits for one that failed for good.
    Blocked {
        /// That one.
        by: usize,
    },
    /// It was dropped: it is not worked on, and nothing waits for it.
    Dropped,
}

/// What a host reports or asks.
#[derive(Debug, Clone)]
pub enum Command<'c> {
    /// What may begin now?
    Look,
    /// The attempt of this node succeeded, and its work is in.
    Succeeded(usize),
    /// The attempt of this node failed.
    Failed(usize, &'c Failure<'c>),
    /// The work of this node does not go together with what came in meanwhile.
    Conflicted(usize),
    /// The attempt of this node was stopped by us, since everything ends: it says nothing about the
    /// node.
    Dropped(usize),
    /// Somebody asks for the end: nothing begins any more.
    Stop,
}

/// What follows from a command.
#[derive(Debug, Clone)]
pub enum Happening {
    /// An attempt begins. Recorded before it is carried out.
    Started {
        /// Of this node.
        node: usize,
    },
    /// The node is complete.
    Completed {
        /// Which.
        node: usize,
    },
    /// The policy decided about a failure.
    Decided {
        /// Of this node.
        node: usize,
        /// What.
        verdict: Verdict,
        /// What the node's machine is after it.
        machine: Box<Machine>,
        /// Where it stands now.
        state: NodeState,
        /// The wait for a rate limit that it begins or shares, if it does.
        wait: Option<LimitWait>,
    },
    /// Work that did not go together is done once more on top of what came in.
    Again {
        /// Of this node.
        node: usize,
    },
    /// The node failed for good.
    GaveUp {
        /// Which.
        node: usize,
        /// Whether nothing begins any more from now on.
        halts: bool,
    },
    /// The node cannot begin: one that it waits for failed.
    Blocked {
        /// Which.
        node: usize,
        /// Which failed.
        by: usize,
    },
    /// The attempt was stopped by us; the node is as if it had not begun.
    Dropped {
        /// Which node.
        node: usize,
    },
    /// The graph has grown. Where the nodes stand that were there before has not changed.
    Grew {
        /// The graph as it is now.
        graph: Arc<Graph>,
        /// For each new node, whether it may be attempted again when nobody knows how far it got.
        repeatable: Vec<bool>,
    },
    /// Nodes were added, changed, dropped and re-opened, all together. What was over goes on.
    Merged {
        /// The graph as it is now.
        graph: Arc<Graph>,
        /// For each new node, whether it may be attempted again when nobody knows how far it got.
        repeatable: Vec<bool>,
        /// The nodes that begin anew.
        reopened: Vec<usize>,
        /// The nodes that are not worked on any more.
        dropped: Vec<usize>,
    },
    /// Nothing begins any more.
    Stopping,
    /// It is over.
    Ended(End),
}

/// Why a graph that is worked through cannot grow like this. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrowthError {
    /// What would come of it is no graph that can be worked through.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A node that has begun, or never will, is to wait for another one.
    #[error("node {node} has begun or cannot begin any more, and is to wait for {other}")]
    Begun {
        /// The node.
        node: usize,
        /// What it is to wait for.
        other: usize,
    },
    /// Everything has ended already.
    #[error("it is over already: nothing can be added")]
    Over,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every node is complete.
    Complete,
    /// Nodes failed for good, in this order.
    Halted(Vec<usize>),
    /// These nodes were set aside, and every other one is complete.
    Blocked(Vec<usize>),
    /// Nothing can begin any more: what is left waits for nodes that were set aside.
    Stuck {
        /// The nodes that were set aside.
        blocked: Vec<usize>,
        /// Those that wait for them, at whatever distance.
        unreachable: Vec<usize>,
    },
    /// Somebody asked for it.
    Stopped,
}

#[derive(Debug, Clone)]
struct Node {
    state: NodeState,
    machine: Machine,
    /// Whether it may be attempted again when nobody knows how far its last attempt got.
    repeatable: bool,
    /// How many of its dependencies are not complete.
    open: usize,
    /// How often its work did not go together.
    conflicts: u32,
    /// How often it failed by its own fault.
    failures: u32,
    /// The number of the last wait for a rate limit that it was part of.
    wait: Option<u32>,
}

/// How often work that does not go together is done again. Once is enough: it is done alone then.
const CONFLICTS_MAX: u32 = 1;

/// The state of a graph that is worked through.
#[derive(Debug, Clone)]
pub struct Schedule {
    graph: Arc<Graph>,
    rules: Rules,
    policy: Arc<Policy>,
    nodes: Vec<Node>,
    running: Vec<usize>,
    failed: Vec<usize>,
    stopping: bool,
    disabled: bool,
    over: bool,
    waits: LimitWaits,
}

impl Schedule {
    /// Nothing has begun but what is `complete` already. Whether a node may be repeated when nobody
    /// knows how far it got is asked of `repeatable`.
    pub fn new(
        graph: Arc<Graph>,
        rules: Rules,
        policy: &Arc<Policy>,
        complete: &[bool],
        repeatable: &dyn Fn(usize) -> bool,
    ) -> Self {
        let is_complete = |node: usize| complete.get(node).copied().unwrap_or(false);
        let node = |node: usize| Node {
            state: if is_complete(node) { NodeState::Complete } else { NodeState::Pending },
            machine: Machine::new(Arc::clone(policy)).repeatable(repeatable(node)),
            repeatable: repeatable(node),
            open: graph.depends_on(node).iter().filter(|dep| !is_complete(**dep)).count(),
            conflicts: 0,
            failures: 0,
            wait: None,
        };
        let times = waits_allowed(policy);
        Self {
            nodes: (0..graph.len()).map(node).collect(),
            graph,
            rules: Rules { jobs: rules.jobs.max(1), ..rules },
            policy: Arc::clone(policy),
            running: Vec::new(),
            failed: Vec::new(),
            stopping: false,
            disabled: false,
            over: false,
            waits: LimitWaits::new(0, 0, times),
        }
    }

    /// After so many waits for rate limits, of which those up to `forgiven` do not count: somebody
    /// has resumed the run since.
    pub fn after_waits(mut self, begun: u32, forgiven: u32) -> Self {
        self.waits = LimitWaits::new(begun, forgiven, waits_allowed(&self.policy));
        self
    }

    /// A node that was waiting for a rate limit when the run was cut off waits for the rest of it.
    pub fn still_waiting(&mut self, node: usize, wait: LimitWait) {
        if let Some(known) = self.nodes.get_mut(node).filter(|node| node.state == NodeState::Pending) {
            known.state = NodeState::Waiting { not_before: wait.until, siblings: Vec::new() };
            known.wait = Some(wait.number);
            self.waits.waits(&wait);
        }
    }

    /// With nodes that were set aside before: they have failed for good, and the others go on.
    pub fn with_blocked(mut self, blocked: &[usize]) -> Self {
        for node in blocked {
            self.nodes[*node].state = NodeState::Failed;
        }
        self
    }

    /// With every recovery turned off.
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        for node in &mut self.nodes {
            node.machine = node.machine.clone().disabled(disabled);
        }
        self
    }

    /// The graph, as it has grown so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where a node stands.
    pub fn state(&self, node: usize) -> &NodeState {
        &self.nodes[node].state
    }

    /// The nodes whose attempts are under way.
    pub fn running(&self) -> &[usize] {
        &self.running
    }

    /// Whether nothing begins any more.
    pub fn is_stopping(&self) -> bool {
        self.stopping || !self.failed.is_empty()
    }

    /// Which of its chances a node is at, counted from 1, and how many it has: what the world did
    /// wrong does not count.
    pub fn chance(&self, node: usize) -> (u32, u32) {
        let chances = self.policy.usual_attempts();
        ((self.nodes[node].failures + 1).min(chances), chances)
    }

    /// When, after now, something may begin that waits for nothing but the time.
    pub fn wake(&self, now: Duration) -> Option<Duration> {
        if self.is_stopping() || self.running.len() >= self.rules.jobs {
            return None;
        }
        let time = |node: &Node| match &node.state {
            NodeState::Waiting { not_before, siblings } if siblings.is_empty() => Some(*not_before),
            _ => None,
        };
        self.nodes.iter().filter_map(time).filter(|time| *time > now).min()
    }

    /// What follows from a command, now. Nothing is changed: [`Self::evolve`] does that.
    pub fn decide(&self, command: &Command<'_>, now: Duration) -> Vec<Happening> {
        match command {
            _ if self.over => Vec::new(),
            Command::Look => self.look(now),
            Command::Stop if self.stopping => Vec::new(),
            Command::Stop => vec![Happening::Stopping],
            Command::Succeeded(node) if self.is_running(*node) => vec![Happening::Completed { node: *node }],
            Command::Failed(node, failure) if self.is_running(*node) => self.failed(*node, failure, now),
            Command::Conflicted(node) if self.is_running(*node) => {
                if self.nodes[*node].conflicts < CONFLICTS_MAX && !self.disabled {
                    vec![Happening::Again { node: *node }]
                } else {
                    self.give_up(*node, self.rules.on_failure == OnFailure::HaltRun)
                }
            }
            Command::Dropped(node) if self.is_running(*node) && self.is_stopping() => {
                vec![Happening::Dropped { node: *node }]
            }
            // Said twice, or of a node that does not run: it changes nothing.
            _ => Vec::new(),
        }
    }

    /// What follows from growth. Nothing is changed: [`Self::evolve`] does that, and
    /// [`Command::Look`] then says what may begin. New nodes that wait for one that failed for good
    /// are blocked from the start. A cycle is refused, and so is a new dependency of a node that
    /// has begun.
    pub fn grow(&self, growth: &Growth) -> Result<Vec<Happening>, GrowthError> {
        if growth.is_empty() {
            return Ok(Vec::new());
        }
        if self.over {
            return Err(GrowthError::Over);
        }
        let graph = self.graph.grown(growth)?;
        let begun = |node: usize| self.nodes.get(node).is_some_and(|node| node.state != NodeState::Pending);
        if let Some(&(node, other)) = growth.edges.iter().find(|(node, _)| begun(*node)) {
            return Err(GrowthError::Begun { node, other });
        }
        let mut blocked = vec![false; graph.len()];
        let mut all = Vec::new();
        for &by in &self.failed {
            for node in graph.all_dependents(by) {
                if !begun(node) && !std::mem::replace(&mut blocked[node], true) {
                    all.push(Happening::Blocked { node, by });
                }
            }
        }
        let repeatable = growth.nodes.iter().map(|node| node.repeatable).collect();
        all.insert(0, Happening::Grew { graph: Arc::new(graph), repeatable });
        Ok(all)
    }

    /// Decides, evolves, and looks what may begin then: all that follows, in order.
    pub fn handle(&mut self, command: &Command<'_>, now: Duration) -> Vec<Happening> {
        let mut all = self.decide(command, now);
        all.iter().for_each(|happening| self.evolve(happening));
        if !matches!(command, Command::Look) {
            let next = self.look(now);
            next.iter().for_each(|happening| self.evolve(happening));
            all.extend(next);
        }
        all
    }

    fn is_running(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.state == NodeState::Running)
    }

    fn failed(&self, node: usize, failure: &Failure<'_>, now: Duration) -> Vec<Happening> {
        let mut machine = self.nodes[node].machine.clone();
        let facts = &failure.fault.facts;
        let limit = LimitWait::name(facts.provider.as_ref(), facts.model.as_ref());
        let own = self.nodes[node].wait.filter(|_| machine.is_waiting_blindly());
        let number = self.waits.number(&limit, own, now);
        let verdict = machine.failed(&Failure { may_wait: number.is_some(), ..failure.clone() });
        let after = match &verdict.decision.action {
            Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => Some(*after),
            action if action.goes_on() => Some(Duration::ZERO),
            _ => None,
        };
        let decided = |state, wait| Happening::Decided {
            node,
            verdict: verdict.clone(),
            machine: Box::new(machine),
            state,
            wait,
        };
        let Some(after) = after else {
            let mut all = vec![decided(NodeState::Running, None)];
            all.extend(self.give_up(node, self.halts(failure)));
            return all;
        };
        let waits_for_others = self.rules.retry == RetryWhen::AfterSiblings && !verdict.outside;
        let siblings = match waits_for_others {
            true => self.running.iter().copied().filter(|other| *other != node).collect(),
            false => Vec::new(),
        };
        let until = now.saturating_add(after);
        let is_limit = failure.fault.reason == Reason::RateLimited && verdict.outside && !after.is_zero();
        let wait = number.filter(|_| is_limit).map(|number| LimitWait { number, limit, until });
        vec![decided(NodeState::Waiting { not_before: until, siblings }, wait)]
    }

    /// Whether a failure for good ends the whole: always, or only for the policy's own reasons.
    fn halts(&self, failure: &Failure<'_>) -> bool {
        let reason = failure.fault.reason;
        // A budget that refuses a start is the run's; one that ran out on the way is the node's
        // own.
        let is_own = reason == Reason::BudgetExhausted && failure.dispatch != Dispatch::NotDispatched;
        self.rules.on_failure == OnFailure::HaltRun
            || (matches!(self.policy.allowance(reason).how, How::Halt) && !is_own)
    }

    fn give_up(&self, node: usize, halts: bool) -> Vec<Happening> {
        let mut all = vec![Happening::GaveUp { node, halts }];
        if self.rules.on_failure == OnFailure::BlockNode {
            // Who waits for it is derived at the end: a merge may still find another way for them.
            return all;
        }
        let waits = self.graph.all_dependents(node).into_iter();
        all.extend(
            waits
                .filter(|other| self.nodes[*other].state == NodeState::Pending)
                .map(|other| Happening::Blocked { node: other, by: node }),
        );
        all
    }

    /// Whether a node waits for nothing but a free slot.
    fn is_ready(&self, node: usize, now: Duration) -> bool {
        match &self.nodes[node].state {
            NodeState::Pending => self.nodes[node].open == 0,
            NodeState::Waiting { not_before, siblings } => siblings.is_empty() && *not_before <= now,
            _ => false,
        }
    }

    /// Whether a node could begin now if there were a free slot, beside these.
    fn may_start(&self, node: usize, beside: &[usize], now: Duration) -> bool {
        let fits = || beside.iter().all(|other| self.graph.are_beside(node, *other));
        self.is_ready(node, now) && (self.rules.parallel == Parallel::Auto || fits())
    }

    /// Whether a node runs alone: its work did not go together with what came in meanwhile, and
    /// with nothing beside it nothing comes in.
    fn runs_alone(&self, node: usize) -> bool {
        self.nodes[node].conflicts > 0
    }

    /// The nodes that begin now.
    fn starting(&self, now: Duration) -> Vec<usize> {
        if self.running.iter().any(|node| self.runs_alone(*node)) {
            return Vec::new();
        }
        // Nothing begins while one waits for its turn alone: what runs ends first.
        let alone = (0..self.nodes.len()).find(|node| self.runs_alone(*node) && self.is_ready(*node, now));
        if let Some(node) = alone {
            return if self.running.is_empty() { vec![node] } else { Vec::new() };
        }
        let mut running = self.running.clone();
        for node in 0..self.nodes.len() {
            if running.len() >= self.rules.jobs {
                break;
            }
            if self.may_start(node, &running, now) {
                running.push(node);
            }
        }
        running.split_off(self.running.len())
    }

    fn look(&self, now: Duration) -> Vec<Happening> {
        if self.over {
            return Vec::new();
        }
        let mut all = Vec::new();
        if !self.is_stopping() {
            all.extend(self.starting(now).into_iter().map(|node| Happening::Started { node }));
        }
        if all.is_empty() && self.running.is_empty() {
            all.extend(self.end().map(Happening::Ended));
        }
        all
    }

    fn end(&self) -> Option<End> {
        let is_done = |node: &Node| matches!(node.state, NodeState::Complete | NodeState::Dropped);
        if self.nodes.iter().all(is_done) {
            return Some(End::Complete);
        }
        if !self.failed.is_empty() {
            return Some(End::Halted(self.failed.clone()));
        }
        if self.stopping {
            return Some(End::Stopped);
        }
        let waits_for_time = |node: &Node| matches!(node.state, NodeState::Waiting { .. });
        if self.rules.on_failure == OnFailure::HaltRun || self.nodes.iter().any(waits_for_time) {
            return None;
        }
        let blocked = self.all_in(|state| matches!(state, NodeState::Failed));
        let unreachable =
            self.all_in(|state| matches!(state, NodeState::Pending | NodeState::Blocked { .. }));
        Some(if unreachable.is_empty() { End::Blocked(blocked) } else { End::Stuck { blocked, unreachable } })
    }

    /// The nodes whose state is one of these, in order.
    fn all_in(&self, is: impl Fn(&NodeState) -> bool) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| is(&self.nodes[*node].state)).collect()
    }

    /// What a happening makes of the state.
    pub fn evolve(&mut self, happening: &Happening) {
        match happening {
            Happening::Started { node } => {
                self.nodes[*node].state = NodeState::Running;
                self.nodes[*node].machine.begin();
                self.running.push(*node);
            }
            Happening::Completed { node } => {
                self.nodes[*node].state = NodeState::Complete;
                self.nodes[*node].machine.succeeded();
                self.no_longer_running(*node);
                for &other in self.graph.dependents(*node) {
                    self.nodes[other].open -= 1;
                }
            }
            Happening::Decided { node, verdict, machine, state, wait } => {
                self.nodes[*node].machine = (**machine).clone();
                if let Some(wait) = wait {
                    self.nodes[*node].wait = Some(wait.number);
                    self.waits.waits(wait);
                }
                self.nodes[*node].failures += u32::from(!verdict.outside);
                self.nodes[*node].state = state.clone();
                if *state != NodeState::Running {
                    self.no_longer_running(*node);
                }
            }
            Happening::Again { node } => {
                self.nodes[*node].conflicts += 1;
                self.nodes[*node].state =
                    NodeState::Waiting { not_before: Duration::ZERO, siblings: Vec::new() };
                self.no_longer_running(*node);
            }
            Happening::Dropped { node } => {
                self.nodes[*node].state = NodeState::Pending;
                self.no_longer_running(*node);
            }
            Happening::GaveUp { node, halts } => {
                self.nodes[*node].state = NodeState::Failed;
                if *halts {
                    self.failed.push(*node);
                }
                self.no_longer_running(*node);
            }
            Happening::Blocked { node, by } => self.nodes[*node].state = NodeState::Blocked { by: *by },
            Happening::Grew { graph, repeatable } => self.grew(graph, repeatable),
            Happening::Merged { graph, repeatable, reopened, dropped } => {
                self.merged(graph, repeatable, reopened, dropped);
            }
            Happening::Stopping => self.stopping = true,
            Happening::Ended(_) => self.over = true,
        }
    }

    fn grew(&mut self, graph: &Arc<Graph>, repeatable: &[bool]) {
        self.graph = Arc::clone(graph);
        for repeatable in repeatable {
            let node = self.new_node(*repeatable);
            self.nodes.push(node);
        }
        self.count_open();
    }

    fn new_node(&self, repeatable: bool) -> Node {
        let machine = Machine::new(Arc::clone(&self.policy));
        Node {
            state: NodeState::Pending,
            machine: machine.repeatable(repeatable).disabled(self.disabled),
            repeatable,
            open: 0,
            conflicts: 0,
            failures: 0,
            wait: None,
        }
    }

    fn count_open(&mut self) {
        for at in 0..self.nodes.len() {
            let open = |dep: &&usize| self.nodes[**dep].state != NodeState::Complete;
            self.nodes[at].open = self.graph.depends_on(at).iter().filter(open).count();
        }
    }

    fn no_longer_running(&mut self, node: usize) {
        self.running.retain(|other| *other != node);
        for other in &mut self.nodes {
            if let NodeState::Waiting { siblings, .. } = &mut other.state {
                siblings.retain(|sibling| *sibling != node);
            }
        }
    }
}

/// How many waits for rate limits a run may begin.
fn waits_allowed(policy: &Policy) -> u32 {
    policy.world.as_ref().map_or(u32::MAX, |world| world.limits.times)
}
