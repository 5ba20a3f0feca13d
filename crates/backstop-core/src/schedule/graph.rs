//! Nodes, and what each waits for. Checked: there is no cycle in it.

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
        let graph = Self { depends_on, dependents, beside: vec![Vec::new(); count] };
        match graph.cycle() {
            Some(cycle) => Err(GraphError::Cycle(cycle)),
            None => Ok(graph),
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
        let mut level = vec![0; self.len()];
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for node in self.order() {
            level[node] = self.depends_on[node].iter().map(|dep| level[*dep] + 1).max().unwrap_or(0);
            while levels.len() <= level[node] {
                levels.push(Vec::new());
            }
            levels[level[node]].push(node);
        }
        for nodes in &mut levels {
            nodes.sort_unstable();
        }
        levels
    }

    /// An order in which every node comes after what it waits for; nodes in a cycle are left out.
    fn order(&self) -> Vec<usize> {
        let mut waits: Vec<usize> = self.depends_on.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..self.len()).filter(|node| waits[*node] == 0).collect();
        let mut at = 0;
        while at < order.len() {
            for &next in &self.dependents[order[at]] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    order.push(next);
                }
            }
            at += 1;
        }
        order
    }

    /// The shortest cycle through the first node that is in one.
    fn cycle(&self) -> Option<Vec<usize>> {
        let order = self.order();
        if order.len() == self.len() {
            return None;
        }
        let mut sorted = vec![false; self.len()];
        order.iter().for_each(|node| sorted[*node] = true);
        // What is left is in a cycle or waits for one: from a node of a cycle, its own number is met again.
        (0..self.len()).filter(|node| !sorted[*node]).find_map(|start| self.way_back(start))
    }

    fn way_back(&self, start: usize) -> Option<Vec<usize>> {
        let mut from: Vec<Option<usize>> = vec![None; self.len()];
        let mut open = std::collections::VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            for &next in &self.depends_on[at] {
                if next == start {
                    let mut way = vec![start, at];
                    let mut back = at;
                    while let Some(before) = from[back].filter(|_| back != start) {
                        way.push(before);
                        back = before;
                    }
                    if at == start {
                        return Some(vec![start, start]);
                    }
                    way.reverse();
                    return Some(way);
                }
                if from[next].is_none() {
                    from[next] = Some(at);
                    open.push_back(next);
                }
            }
        }
        None
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
