//! The scheduler: which node of a [`Graph`] may be attempted now, what follows from a failure, and when it is over.
//!
//! Pure. [`Schedule::decide`] says what follows from a [`Command`], as [`Happening`]s; [`Schedule::evolve`] is what each of
//! them makes of the state, so that the state is the fold of what happened. A host carries out what happened and feeds
//! commands back. It must not wait, run or record anything. Each node has an attempt machine of its own; here is what lies
//! between nodes: what waits for what, who runs beside whom, who is retried when, what a failure blocks.
//!
//! The three types that matter: [`Schedule`], [`Command`] and [`Happening`].

mod graph;
#[cfg(test)]
mod properties;

pub use graph::{Graph, GraphError};

use crate::{Action, Failure, Machine, Policy, Verdict};
use std::sync::Arc;
use std::time::Duration;

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

/// How a graph is worked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How many run at once, at least 1.
    pub jobs: usize,
    /// Which may.
    pub parallel: Parallel,
    /// When a retry begins.
    pub retry: RetryWhen,
}

impl Default for Rules {
    fn default() -> Self {
        Self { jobs: 1, parallel: Parallel::default(), retry: RetryWhen::default() }
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
    /// The attempt of this node was stopped by us, since everything ends: it says nothing about the node.
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
    },
    /// Work that did not go together is done once more on top of what came in.
    Again {
        /// Of this node.
        node: usize,
    },
    /// The node failed for good; from now on nothing begins any more.
    GaveUp {
        /// Which.
        node: usize,
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
    /// Nothing begins any more.
    Stopping,
    /// It is over.
    Ended(End),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every node is complete.
    Complete,
    /// Nodes failed for good, in this order.
    Halted(Vec<usize>),
    /// Somebody asked for it.
    Stopped,
}

#[derive(Debug, Clone)]
struct Node {
    state: NodeState,
    machine: Machine,
    /// How many of its dependencies are not complete.
    open: usize,
    /// How often its work did not go together.
    conflicts: u32,
    /// How often it failed by its own fault.
    failures: u32,
}

/// How often work that does not go together is done again.
const CONFLICTS_MAX: u32 = 1;

/// The state of a graph that is worked through.
#[derive(Debug, Clone)]
pub struct Schedule {
    graph: Arc<Graph>,
    rules: Rules,
    chances: u32,
    nodes: Vec<Node>,
    running: Vec<usize>,
    failed: Vec<usize>,
    stopping: bool,
    disabled: bool,
    over: bool,
}

impl Schedule {
    /// Nothing has begun but what is `complete` already. Whether a node may be repeated when nobody knows how far it got is
    /// asked of `repeatable`.
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
            open: graph.depends_on(node).iter().filter(|dep| !is_complete(**dep)).count(),
            conflicts: 0,
            failures: 0,
        };
        Self {
            nodes: (0..graph.len()).map(node).collect(),
            graph,
            rules: Rules { jobs: rules.jobs.max(1), ..rules },
            chances: policy.usual_attempts(),
            running: Vec::new(),
            failed: Vec::new(),
            stopping: false,
            disabled: false,
            over: false,
        }
    }

    /// With every recovery turned off.
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        for node in &mut self.nodes {
            node.machine = node.machine.clone().disabled(disabled);
        }
        self
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

    /// Which of its chances a node is at, counted from 1, and how many it has: what the world did wrong does not count.
    pub fn chance(&self, node: usize) -> (u32, u32) {
        ((self.nodes[node].failures + 1).min(self.chances), self.chances)
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
                    self.give_up(*node)
                }
            }
            Command::Dropped(node) if self.is_running(*node) && self.is_stopping() => {
                vec![Happening::Dropped { node: *node }]
            }
            // Said twice, or of a node that does not run: it changes nothing.
            _ => Vec::new(),
        }
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
        let verdict = machine.failed(failure);
        let after = match &verdict.decision.action {
            Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => Some(*after),
            action if action.goes_on() => Some(Duration::ZERO),
            _ => None,
        };
        let decided =
            |state| Happening::Decided { node, verdict: verdict.clone(), machine: Box::new(machine), state };
        let Some(after) = after else {
            let mut all = vec![decided(NodeState::Running)];
            all.extend(self.give_up(node));
            return all;
        };
        let waits_for_others = self.rules.retry == RetryWhen::AfterSiblings && !verdict.outside;
        let siblings = match waits_for_others {
            true => self.running.iter().copied().filter(|other| *other != node).collect(),
            false => Vec::new(),
        };
        vec![decided(NodeState::Waiting { not_before: now.saturating_add(after), siblings })]
    }

    fn give_up(&self, node: usize) -> Vec<Happening> {
        let mut all = vec![Happening::GaveUp { node }];
        let waits = self.graph.all_dependents(node).into_iter();
        all.extend(
            waits
                .filter(|other| self.nodes[*other].state == NodeState::Pending)
                .map(|other| Happening::Blocked { node: other, by: node }),
        );
        all
    }

    /// Whether a node could begin now if there were a free slot, beside these.
    fn may_start(&self, node: usize, beside: &[usize], now: Duration) -> bool {
        let ready = match &self.nodes[node].state {
            NodeState::Pending => self.nodes[node].open == 0,
            NodeState::Waiting { not_before, siblings } => siblings.is_empty() && *not_before <= now,
            _ => false,
        };
        let fits = || beside.iter().all(|other| self.graph.are_beside(node, *other));
        ready && (self.rules.parallel == Parallel::Auto || fits())
    }

    fn look(&self, now: Duration) -> Vec<Happening> {
        if self.over {
            return Vec::new();
        }
        let mut all = Vec::new();
        if !self.is_stopping() {
            let mut running = self.running.clone();
            for node in 0..self.nodes.len() {
                if running.len() >= self.rules.jobs {
                    break;
                }
                if self.may_start(node, &running, now) {
                    running.push(node);
                    all.push(Happening::Started { node });
                }
            }
        }
        if all.is_empty() && self.running.is_empty() {
            all.extend(self.end().map(Happening::Ended));
        }
        all
    }

    fn end(&self) -> Option<End> {
        if self.nodes.iter().all(|node| node.state == NodeState::Complete) {
            return Some(End::Complete);
        }
        if !self.failed.is_empty() {
            return Some(End::Halted(self.failed.clone()));
        }
        self.stopping.then_some(End::Stopped)
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
            Happening::Decided { node, verdict, machine, state } => {
                self.nodes[*node].machine = (**machine).clone();
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
            Happening::GaveUp { node } => {
                self.nodes[*node].state = NodeState::Failed;
                self.failed.push(*node);
                self.no_longer_running(*node);
            }
            Happening::Blocked { node, by } => self.nodes[*node].state = NodeState::Blocked { by: *by },
            Happening::Stopping => self.stopping = true,
            Happening::Ended(_) => self.over = true,
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
