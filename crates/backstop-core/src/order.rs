//! The order of a dependency graph: cycles, levels, and what depends on what. Used for plan
//! documents and by the scheduler, so that both agree.
//!
//! A graph is a list of dependencies for each phase, as indexes. Indexes that do not exist are
//! ignored. Nothing here is recursive, and everything follows the order of the table, so that the
//! same plan always has the same result.

use std::collections::VecDeque;

/// The dependencies of a phase that exist.
fn of<'g, L: AsRef<[usize]>>(graph: &'g [L], phase: usize) -> impl Iterator<Item = usize> + 'g {
    graph[phase].as_ref().iter().copied().filter(|on| *on < graph.len())
}

/// The phases in topological order. Phases that depend on a cycle are left out.
fn ordered<L: AsRef<[usize]>>(graph: &[L]) -> Vec<usize> {
    let mut waiting: Vec<usize> = (0..graph.len()).map(|phase| of(graph, phase).count()).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    for phase in 0..graph.len() {
        for on in of(graph, phase) {
            followers[on].push(phase);
        }
    }
    let mut order: Vec<usize> = (0..graph.len()).filter(|phase| waiting[*phase] == 0).collect();
    let mut next = 0;
    while let Some(&done) = order.get(next) {
        next += 1;
        for &follower in &followers[done] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                order.push(follower);
            }
        }
    }
    order
}

/// The levels: each phase is one level after the last of its dependencies.
pub fn levels<L: AsRef<[usize]>>(graph: &[L]) -> Vec<Vec<usize>> {
    let mut level = vec![0usize; graph.len()];
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for phase in ordered(graph) {
        level[phase] = of(graph, phase).map(|on| level[on] + 1).max().unwrap_or(0);
        if levels.len() <= level[phase] {
            levels.resize(level[phase] + 1, Vec::new());
        }
        levels[level[phase]].push(phase);
    }
    levels.iter_mut().for_each(|level| level.sort_unstable());
    levels
}

/// The shortest path of at least one step from one phase to another along dependencies, both ends
/// included.
pub fn path<L: AsRef<[usize]>>(graph: &[L], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; graph.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(phase) = queue.pop_front() {
        for on in of(graph, phase) {
            if on == to {
                let mut path = vec![on, phase];
                let mut at = phase;
                while at != from {
                    at = before[at]?;
                    path.push(at);
                }
                path.reverse();
                return Some(path);
            }
            if on != from && before[on].is_none() {
                before[on] = Some(phase);
                queue.push_back(on);
            }
        }
    }
    None
}

/// The shortest cycle through the first phase that is in one, with that phase first and last.
pub fn cycle<L: AsRef<[usize]>>(graph: &[L]) -> Option<Vec<usize>> {
    let first = first_in_cycle(graph)?;
    path(graph, first, first)
}

/// The first phase that depends on itself, directly or not.
///
/// Strongly connected phases are found by Tarjan's algorithm, with an explicit stack.
fn first_in_cycle<L: AsRef<[usize]>>(graph: &[L]) -> Option<usize> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; graph.len()];
    let mut low = vec![0usize; graph.len()];
    let mut open = vec![false; graph.len()];
    let (mut component, mut count, mut first) = (Vec::new(), 0, None);
    for root in 0..graph.len() {
        if number[root] != NEW {
            continue;
        }
        // Each phase, with the number of its dependencies that were visited.
        let mut visits = vec![(root, 0usize)];
        while let Some(visit) = visits.last_mut() {
            let (phase, seen) = *visit;
            if seen == 0 {
                (number[phase], low[phase], open[phase]) = (count, count, true);
                count += 1;
                component.push(phase);
            }
            visit.1 += 1;
            match graph[phase].as_ref().get(seen).copied() {
                Some(on) if on >= graph.len() => {}
                Some(on) if number[on] == NEW => visits.push((on, 0)),
                Some(on) if open[on] => low[phase] = low[phase].min(number[on]),
                Some(_) => {}
                None => {
                    visits.pop();
                    if let Some((above, _)) = visits.last() {
                        low[*above] = low[*above].min(low[phase]);
                    }
                    if low[phase] == number[phase] {
                        let from = component.iter().rposition(|member| *member == phase).unwrap_or(0);
                        let members = component.split_off(from);
                        members.iter().for_each(|member| open[*member] = false);
                        if members.len() > 1 || of(graph, phase).any(|on| on == phase) {
                            first = first.into_iter().chain(members).min();
                        }
                    }
                }
            }
        }
    }
    first
}

/// The transitive dependencies of all phases.
pub struct Reach {
    /// A row of bits for each phase.
    bits: Vec<u64>,
    words: usize,
}

impl Reach {
    /// Computed for a graph without cycles.
    pub fn new<L: AsRef<[usize]>>(graph: &[L]) -> Self {
        let words = graph.len().div_ceil(64);
        let mut bits = vec![0u64; words * graph.len()];
        for phase in ordered(graph) {
            for on in of(graph, phase) {
                for word in 0..words {
                    bits[phase * words + word] |= bits[on * words + word];
                }
                bits[phase * words + on / 64] |= 1 << (on % 64);
            }
        }
        Self { bits, words }
    }

    /// Whether `phase` depends on `on`, directly or not.
    pub fn waits(&self, phase: usize, on: usize) -> bool {
        self.bits.get(phase * self.words + on / 64).is_some_and(|word| word >> (on % 64) & 1 == 1)
    }

    /// Whether one of the two depends on the other.
    pub fn either(&self, a: usize, b: usize) -> bool {
        self.waits(a, b) || self.waits(b, a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(edges: &[(usize, usize)], size: usize) -> Vec<Vec<usize>> {
        let mut graph = vec![Vec::new(); size];
        for (phase, on) in edges {
            graph[*phase].push(*on);
        }
        graph
    }

    #[test]
    fn the_shortest_cycle_of_the_first_phase_in_one() {
        for (edges, want) in [
            (&[(1, 0), (2, 1)][..], None),
            (&[(0, 1), (1, 0)], Some(vec![0, 1, 0])),
            (&[(0, 1), (1, 2), (2, 1)], Some(vec![1, 2, 1])),
            (&[(1, 2), (2, 3), (3, 1), (2, 1)], Some(vec![1, 2, 1])),
            (&[(2, 2)], Some(vec![2, 2])),
            (&[(0, 9), (3, 2), (2, 3)], Some(vec![2, 3, 2])),
        ] {
            assert_eq!(cycle(&graph(edges, 4)), want, "{edges:?}");
        }
    }

    #[test]
    fn levels_are_by_the_longest_way() {
        assert_eq!(
            levels(&graph(&[(1, 0), (2, 1), (3, 0), (3, 2)], 5)),
            [vec![0, 4], vec![1], vec![2], vec![3]]
        );
        assert_eq!(levels(&graph(&[(0, 1), (1, 0), (2, 7)], 3)), [[2]]);
        assert_eq!(levels::<Vec<usize>>(&[]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let chain: Vec<Vec<usize>> =
            (0..10_000).map(|n| if n == 0 { vec![9_999] } else { vec![n - 1] }).collect();
        assert_eq!(cycle(&chain).unwrap().len(), 10_001);
    }

    proptest! {
        #[test]
        fn the_answers_agree_with_each_other(edges in prop::collection::vec((0usize..8, 0usize..8), 0..20)) {
            let graph = graph(&edges, 8);
            let first = (0..8).find(|phase| path(&graph, *phase, *phase).is_some());
            let cycle = cycle(&graph);
            prop_assert_eq!(cycle.as_ref().map(|cycle| cycle[0]), first);
            prop_assert_eq!(ordered(&graph).len() == 8, cycle.is_none());
            if cycle.is_none() {
                let reach = Reach::new(&graph);
                for a in 0..8 {
                    for b in 0..8 {
                        prop_assert_eq!(reach.waits(a, b), path(&graph, a, b).is_some());
                    }
                }
                prop_assert_eq!(levels(&graph).concat().len(), 8);
            }
        }
    }
}
