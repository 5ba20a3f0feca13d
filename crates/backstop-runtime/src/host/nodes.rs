//! The nodes of a run as events bring them, and what the schedule's graph must grow by when there
//! are more.

use super::RunProgress;
use backstop_core::{
    Fault, Graph, GraphError, Growth, GrowthError, Happening, NewNode, PhaseRecord, Reason, SafeText,
    Schedule,
};
use std::collections::BTreeMap;

/// A node as an event brings it. Others are named by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its id.
    pub id: String,
    /// The ids of those it waits for.
    pub depends_on: Vec<String>,
    /// The ids of those that may run at the same time.
    pub beside: Vec<String>,
    /// Whether it may be attempted again when nobody knows how far its last attempt got.
    pub repeatable: bool,
}

impl NodeSpec {
    /// A phase of a plan is a node.
    pub(super) fn of(phase: &PhaseRecord) -> Self {
        Self {
            id: phase.id.clone(),
            depends_on: phase.depends_on.clone(),
            beside: phase.parallel_with.clone(),
            repeatable: phase.repeatable,
        }
    }
}

/// Why a run cannot have these nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// Nodes wait for each other. The first is named again at the end.
    #[error("these wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A node names one that is not there.
    #[error("{node} names {other}, which is not there")]
    Unknown {
        /// The node.
        node: String,
        /// What it names.
        other: String,
    },
    /// A node that has begun, or cannot begin any more, is to wait for another one.
    #[error("{node} has begun or cannot begin any more, and is to wait for {other}")]
    Begun {
        /// The node.
        node: String,
        /// What it is to wait for.
        other: String,
    },
    /// Nodes can only be added while a run goes on.
    #[error(
        "{node} was removed, moved or no longer waits for what it waited for; while a run goes on, nodes are only added"
    )]
    Changed {
        /// The node.
        node: String,
    },
    /// Every node has ended already.
    #[error("the run is over: no node can be added")]
    Over,
}

impl NodesError {
    pub(super) fn of(error: GraphError, ids: &[String]) -> Self {
        let id = |at: usize| ids.get(at).cloned().unwrap_or_else(|| format!("node {at}"));
        match error {
            GraphError::Cycle(cycle) => Self::Cycle(cycle.into_iter().map(id).collect()),
            GraphError::Unknown { node, other } => Self::Unknown { node: id(node), other: id(other) },
        }
    }

    fn of_growth(error: GrowthError, ids: &[String]) -> Self {
        let id = |at: usize| ids.get(at).cloned().unwrap_or_else(|| format!("node {at}"));
        match error {
            GrowthError::Graph(error) => Self::of(error, ids),
            GrowthError::Begun { node, other } => Self::Begun { node: id(node), other: id(other) },
            GrowthError::Over => Self::Over,
        }
    }

    /// What it is for whoever brought these nodes.
    pub(super) fn fault(&self) -> Fault {
        let mut fault = Fault::new(match self {
            NodesError::Cycle(_) => Reason::CircularDependency,
            _ => Reason::StateInvalid,
        });
        fault.cause = Some(SafeText::new(self.to_string()));
        fault
    }
}

/// What follows where the schedule's graph becomes the graph of these nodes. Nothing is changed.
/// `ids` names the nodes that the schedule knows.
pub(super) fn grow(
    progress: &RunProgress,
    schedule: &Schedule,
    ids: &[String],
) -> Result<Vec<Happening>, NodesError> {
    let growth = growth(progress, schedule.graph(), ids)?;
    schedule.grow(&growth).map_err(|error| NodesError::of_growth(error, &progress.order))
}

/// The graph of a run's nodes.
pub(super) fn graph(progress: &RunProgress) -> Result<Graph, NodesError> {
    let numbers = Numbers::of(progress);
    let specs = || (0..progress.order.len()).map(|at| &progress.node(at).spec);
    let depends_on = specs().map(|spec| numbers.depends_on(spec)).collect::<Result<_, _>>()?;
    let beside = specs().map(|spec| numbers.beside(spec)).collect::<Result<Vec<_>, _>>()?;
    let graph = Graph::new(depends_on).map_err(|error| NodesError::of(error, &progress.order))?;
    Ok(graph.with_beside(&beside))
}

fn growth(progress: &RunProgress, graph: &Graph, ids: &[String]) -> Result<Growth, NodesError> {
    if let Some(at) = (0..ids.len()).find(|at| progress.order.get(*at) != ids.get(*at)) {
        return Err(NodesError::Changed { node: ids[at].clone() });
    }
    let numbers = Numbers::of(progress);
    let mut growth = Growth::default();
    for (at, id) in progress.order.iter().enumerate() {
        let spec = &progress.node(at).spec;
        let depends_on = numbers.depends_on(spec)?;
        if at >= graph.len() {
            let beside = numbers.beside(spec)?;
            growth.nodes.push(NewNode { depends_on, beside, repeatable: spec.repeatable });
            continue;
        }
        let known = graph.depends_on(at);
        if known.iter().any(|dep| !depends_on.contains(dep)) {
            return Err(NodesError::Changed { node: id.clone() });
        }
        growth.edges.extend(depends_on.iter().filter(|dep| !known.contains(dep)).map(|dep| (at, *dep)));
    }
    Ok(growth)
}

/// The numbers of a run's nodes, by id.
struct Numbers<'n>(BTreeMap<&'n str, usize>);

impl<'n> Numbers<'n> {
    fn of(progress: &'n RunProgress) -> Self {
        Self(progress.order.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect())
    }

    fn depends_on(&self, node: &NodeSpec) -> Result<Vec<usize>, NodesError> {
        self.all(node, &node.depends_on)
    }

    fn beside(&self, node: &NodeSpec) -> Result<Vec<usize>, NodesError> {
        self.all(node, &node.beside)
    }

    fn all(&self, node: &NodeSpec, ids: &[String]) -> Result<Vec<usize>, NodesError> {
        let number = |id: &String| {
            let unknown = || NodesError::Unknown { node: node.id.clone(), other: id.clone() };
            self.0.get(id.as_str()).copied().ok_or_else(unknown)
        };
        ids.iter().map(number).collect()
    }
}
