//! Nodes, and what each waits for. Checked: there is no cycle in it.

use crate::order;

/// Nodes by number, and what each waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    depends_on: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    beside: Vec<Vec<usize>>,
}

/// Why something is no graph that can be worked through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nodes wait for each other. The first is named again at the end.
    #[error("nodes wait for each other: {0:?}")]
    Cycle(Vec<usize>),
    /// A node names one that is not there.
    #[error("node {node} names {other}, which is not there")]
    Unknown {
        /// The node.
        node: usize,
        /// What it names.
        other: usize,
    },
}

impl Graph {
    /// From what each node waits for.
    pub fn new(mut depends_on: Vec<Vec<usize>>) -> Result<Self, GraphError> {
        let count = depends_on.len();
        let mut dependents = vec![Vec::new(); count];
        for (node, others) in depends_on.iter_mut().enumerate() {
            others.sort_unstable();
            others.dedup();
            for &other in others.iter() {
                dependents.get_mut(other).ok_or(GraphError::Unknown { node, other })?.push(node);
            }
        }
        match order::cycle(&depends_on) {
            Some(cycle) => Err(GraphError::Cycle(cycle)),
            None => Ok(Self { depends_on, dependents, beside: vec![Vec::new(); count] }),
        }
    }

    /// With those that may run side by side, where not everything may. It counts in both directions.
    pub fn with_beside(mut self, beside: &[Vec<usize>]) -> Self {
        for (node, others) in beside.iter().enumerate().take(self.len()) {
            for &other in others.iter().filter(|other| **other < self.depends_on.len()) {
                self.beside[node].push(other);
                self.beside[other].push(node);
            }
        }
        for others in &mut self.beside {
            others.sort_unstable();
            others.dedup();
        }
        self
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.depends_on.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.depends_on.is_empty()
    }

    /// What a node waits for.
    pub fn depends_on(&self, node: usize) -> &[usize] {
        &self.depends_on[node]
    }

    /// What waits for a node.
    pub fn dependents(&self, node: usize) -> &[usize] {
        &self.dependents[node]
    }

    /// Whether two nodes are declared to run side by side.
    pub fn are_beside(&self, one: usize, other: usize) -> bool {
        self.beside[one].binary_search(&other).is_ok()
    }

    /// Everything that waits for a node, at whatever distance, in order.
    pub fn all_dependents(&self, node: usize) -> Vec<usize> {
        let mut seen = vec![false; self.len()];
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for &next in &self.dependents[at] {
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        (0..self.len()).filter(|at| seen[*at]).collect()
    }

    /// The nodes by the length of the longest way to them: what could begin together if nothing else held it up.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        order::levels(&self.depends_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_spelled_out() {
        let cycle = |deps: &[&[usize]]| Graph::new(deps.iter().map(|d| d.to_vec()).collect()).unwrap_err();
        assert_eq!(cycle(&[&[0]]), GraphError::Cycle(vec![0, 0]));
        assert_eq!(cycle(&[&[], &[2], &[1]]), GraphError::Cycle(vec![1, 2, 1]));
        assert_eq!(cycle(&[&[1], &[2], &[3], &[1]]), GraphError::Cycle(vec![1, 2, 3, 1]));
        assert_eq!(cycle(&[&[7]]), GraphError::Unknown { node: 0, other: 7 });
    }

    #[test]
    fn levels_and_dependents() {
        let graph = Graph::new(vec![vec![], vec![0], vec![0], vec![1, 2], vec![]]).unwrap();
        assert_eq!(graph.levels(), [vec![0, 4], vec![1, 2], vec![3]]);
        assert_eq!(graph.all_dependents(0), [1, 2, 3]);
        let graph = graph.with_beside(&[vec![], vec![2], vec![], vec![], vec![]]);
        assert!(graph.are_beside(2, 1) && !graph.are_beside(1, 3));
    }
}
