//! Changes to a graph that is worked through: nodes are added, changed, dropped and re-opened by
//! one [`Merge`], all of it or nothing.
//!
//! It must not touch what is complete or under way. A node that is opened again has changed in
//! something, itself or in what it waits for: the same again would only fail again.

use super::{Graph, GraphError, Happening, NewNode, NodeState, Schedule};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What becomes of one node that is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeChange {
    /// The node.
    pub node: usize,
    /// What it waits for from now on; nothing where that stays.
    pub depends_on: Option<Vec<usize>>,
    /// Whether what it is to do has changed.
    pub is_changed: bool,
    /// Whether it is opened again, where it was set aside.
    pub reopen: bool,
    /// Whether it is not worked on any more. Nothing else counts then.
    pub is_dropped: bool,
}

/// Changes to a graph, carried out together. New nodes come after those that are there, whose
/// numbers stay the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merge {
    /// What becomes of nodes that are there. Those that are not named stay as they are.
    pub changes: Vec<NodeChange>,
    /// The new nodes.
    pub added: Vec<NewNode>,
}

impl Merge {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.added.is_empty()
    }
}

/// Why a graph cannot be changed like this. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// What would come of it is no graph that can be worked through.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A node would wait for one that is dropped.
    #[error("node {node} waits for {other}, which is dropped")]
    Dangling {
        /// The node.
        node: usize,
        /// The dropped one.
        other: usize,
    },
    /// A node whose attempt is under way cannot be changed or dropped.
    #[error("node {0} is under way")]
    Running(usize),
    /// A complete node stays as it is.
    #[error("node {0} is complete")]
    Complete(usize),
    /// A node is to be opened again, and nothing has changed for it.
    #[error("node {0} is opened again and nothing has changed for it")]
    Unchanged(usize),
    /// The run was stopped or has halted.
    #[error("it was stopped: nothing can be changed")]
    Stopped,
}

impl Schedule {
    /// What follows from a merge. Nothing is changed: [`Schedule::evolve`] does that, and
    /// [`Command::Look`](super::Command::Look) then says what may begin. What was over because
    /// nothing could begin goes on.
    pub fn merge(&self, merge: &Merge) -> Result<Vec<Happening>, MergeError> {
        if merge.is_empty() {
            return Ok(Vec::new());
        }
        if self.is_stopping() {
            return Err(MergeError::Stopped);
        }
        for change in &merge.changes {
            match self.nodes.get(change.node).map(|node| &node.state) {
                None => {
                    return Err(GraphError::Unknown { node: change.node, other: change.node }.into());
                }
                Some(NodeState::Running) => return Err(MergeError::Running(change.node)),
                Some(NodeState::Complete) => return Err(MergeError::Complete(change.node)),
                Some(_) => {}
            }
        }
        let graph = self.merged_graph(merge)?;
        let is_dropped = |node: usize| {
            merge.changes.iter().any(|change| change.node == node && change.is_dropped)
                || self.nodes.get(node).is_some_and(|node| node.state == NodeState::Dropped)
        };
        for node in (0..graph.len()).filter(|node| !is_dropped(*node)) {
            if let Some(&other) = graph.depends_on(node).iter().find(|other| is_dropped(**other)) {
                return Err(MergeError::Dangling { node, other });
            }
        }
        let changed = self.changed_by(merge, &graph);
        let kept = || merge.changes.iter().filter(|change| !change.is_dropped);
        if let Some(change) = kept().find(|change| change.reopen && !changed.contains(&change.node)) {
            return Err(MergeError::Unchanged(change.node));
        }
        let begins_anew = |change: &&NodeChange| match self.nodes[change.node].state {
            NodeState::Failed | NodeState::Blocked { .. } => change.reopen,
            NodeState::Dropped => true,
            _ => change.is_changed || change.depends_on.is_some(),
        };
        Ok(vec![Happening::Merged {
            graph: Arc::new(graph),
            repeatable: merge.added.iter().map(|node| node.repeatable).collect(),
            reopened: kept().filter(begins_anew).map(|change| change.node).collect(),
            dropped: merge
                .changes
                .iter()
                .filter(|change| change.is_dropped)
                .map(|change| change.node)
                .collect(),
        }])
    }

    fn merged_graph(&self, merge: &Merge) -> Result<Graph, GraphError> {
        let count = self.graph.len() + merge.added.len();
        let mut depends_on: Vec<Vec<usize>> =
            (0..self.graph.len()).map(|node| self.graph.depends_on(node).to_vec()).collect();
        let mut beside: Vec<Vec<usize>> = (0..self.graph.len())
            .map(|node| (0..self.graph.len()).filter(|other| self.graph.are_beside(node, *other)).collect())
            .collect();
        for change in &merge.changes {
            if change.is_dropped {
                depends_on[change.node].clear();
            } else if let Some(own) = &change.depends_on {
                depends_on[change.node].clone_from(own);
            }
        }
        for (at, new) in merge.added.iter().enumerate() {
            let node = self.graph.len() + at;
            if let Some(&other) = new.beside.iter().find(|other| **other >= count) {
                return Err(GraphError::Unknown { node, other });
            }
            depends_on.push(new.depends_on.clone());
            beside.push(new.beside.clone());
        }
        Ok(Graph::new(depends_on)?.with_beside(&beside))
    }

    /// The nodes that are not what they were: changed themselves, or waiting for one that is new or
    /// changed, at whatever distance.
    fn changed_by(&self, merge: &Merge, graph: &Graph) -> BTreeSet<usize> {
        let differs = |change: &&NodeChange| {
            let old = self.graph.depends_on(change.node);
            let rewired = change.depends_on.as_ref().is_some_and(|_| graph.depends_on(change.node) != old);
            !change.is_dropped && (change.is_changed || rewired)
        };
        let own = merge.changes.iter().filter(differs).map(|change| change.node);
        let roots: Vec<usize> = own.chain(self.graph.len()..graph.len()).collect();
        let reached: Vec<usize> = roots.iter().flat_map(|root| graph.all_dependents(*root)).collect();
        roots.into_iter().chain(reached).collect()
    }

    pub(super) fn merged(
        &mut self,
        graph: &Arc<Graph>,
        repeatable: &[bool],
        reopened: &[usize],
        dropped: &[usize],
    ) {
        for node in reopened {
            self.nodes[*node] = self.new_node(self.nodes[*node].repeatable);
        }
        for node in dropped {
            self.nodes[*node].state = NodeState::Dropped;
        }
        self.over = false;
        self.grew(graph, repeatable);
    }
}
