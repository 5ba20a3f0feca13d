//! Random graphs in which failed nodes are set aside, with random merges: they always end, the end
//! is what the nodes say it is, and a merge is whole or not at all.

use super::*;
use crate::{Dispatch, Fault, profile};
use proptest::prelude::*;

/// What a merge asks for. Numbers are taken modulo what there is; it may be a cycle, name what is
/// complete or under way, or re-open what has not changed: then all of it is refused.
#[derive(Debug, Clone)]
struct MergeAt {
    step: usize,
    #[allow(clippy::type_complexity)]
    changes: Vec<(usize, Option<Vec<usize>>, bool, bool, bool)>,
    added: Vec<Vec<usize>>,
}

prop_compose! {
    fn merge_at()(
        step in 0usize..30,
        changes in prop::collection::vec((
            0usize..40,
            prop::option::of(prop::collection::vec(0usize..40, 0..3)),
            any::<bool>(), any::<bool>(), prop::bool::weighted(0.2),
        ), 0..4),
        added in prop::collection::vec(prop::collection::vec(0usize..40, 0..3), 0..3),
    ) -> MergeAt {
        MergeAt { step, changes, added }
    }
}

impl MergeAt {
    fn of(&self, count: usize) -> Merge {
        let all = count + self.added.len();
        let change =
            |(node, deps, is_changed, reopen, is_dropped): &(usize, Option<Vec<usize>>, bool, bool, bool)| {
                NodeChange {
                    node: node % count,
                    depends_on: deps.as_ref().map(|deps| deps.iter().map(|dep| dep % all).collect()),
                    is_changed: *is_changed,
                    reopen: *reopen,
                    is_dropped: *is_dropped,
                }
            };
        let added = |deps: &Vec<usize>| NewNode {
            depends_on: deps.iter().map(|dep| dep % all).collect(),
            beside: Vec::new(),
            repeatable: true,
        };
        let mut changes: Vec<NodeChange> = self.changes.iter().map(change).collect();
        changes.sort_by_key(|change| change.node);
        changes.dedup_by_key(|change| change.node);
        Merge { changes, added: self.added.iter().map(added).collect() }
    }
}

#[derive(Debug, Clone)]
struct World {
    depends_on: Vec<Vec<usize>>,
    jobs: usize,
    /// Of each attempt in turn: 0 succeeds, 1 fails by its own fault, 2 is rate limited, 3 is lost,
    /// 4 is in conflict, 5 halts everything.
    outcomes: Vec<u8>,
    picks: Vec<usize>,
    merges: Vec<MergeAt>,
}

prop_compose! {
    fn world()(count in 1usize..10)(
        edges in prop::collection::vec((0..count, 0..count), 0..count * 2),
        jobs in 1usize..4,
        outcomes in prop::collection::vec(prop_oneof![5 => Just(0u8), 4 => Just(1), 1 => Just(2), 1 => Just(3), 1 => Just(4), 1 => prop::sample::select(vec![0u8, 0, 0, 5])], 1..120),
        picks in prop::collection::vec(0usize..8, 1..30),
        merges in prop::collection::vec(merge_at(), 0..4),
        count in Just(count),
    ) -> World {
        let mut depends_on = vec![Vec::new(); count];
        for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
            depends_on[a.max(b)].push(a.min(b));
        }
        World { depends_on, jobs, outcomes, picks, merges }
    }
}

fn block_rules(jobs: usize) -> Rules {
    Rules { jobs, parallel: Parallel::Auto, retry: RetryWhen::Immediate, on_failure: OnFailure::BlockNode }
}

/// Tries a merge and checks that it is whole or not at all.
fn try_merge(schedule: &mut Schedule, at: &MergeAt) -> Result<bool, TestCaseError> {
    let merge = at.of(schedule.graph.len());
    let before: Vec<NodeState> = schedule.nodes.iter().map(|node| node.state.clone()).collect();
    let graph_before = Arc::clone(&schedule.graph);
    let outcome = schedule.merge(&merge);
    prop_assert_eq!(&schedule.graph, &graph_before, "nothing changes before it is evolved");
    let Ok(happenings) = outcome else {
        return Ok(false);
    };
    happenings.iter().for_each(|happening| schedule.evolve(happening));
    for (node, state) in before.iter().enumerate() {
        let now = schedule.state(node);
        let change = merge.changes.iter().find(|change| change.node == node);
        match (state, change) {
            (_, None) | (NodeState::Running | NodeState::Complete, _) => prop_assert_eq!(now, state),
            (_, Some(change)) if change.is_dropped => prop_assert_eq!(now, &NodeState::Dropped),
            (NodeState::Failed, Some(change)) if change.reopen => {
                prop_assert_eq!(now, &NodeState::Pending);
                let new_parent =
                    |dep: &usize| *dep >= before.len() || merge.changes.iter().any(|c| c.node == *dep);
                let mut ancestors = schedule.graph.depends_on(node).to_vec();
                let mut next = 0;
                while next < ancestors.len() {
                    let more = schedule.graph.depends_on(ancestors[next]).to_vec();
                    ancestors
                        .extend(more.into_iter().filter(|dep| !ancestors.contains(dep)).collect::<Vec<_>>());
                    next += 1;
                }
                let changed = change.is_changed
                    || graph_before.depends_on(node) != schedule.graph.depends_on(node)
                    || ancestors.iter().any(new_parent);
                prop_assert!(changed, "a re-opened node has changed in something");
            }
            (NodeState::Failed, Some(_)) => prop_assert_eq!(now, state),
            _ => {}
        }
    }
    Ok(!happenings.is_empty())
}

fn play(world: &World) -> Result<(), TestCaseError> {
    let graph = Arc::new(Graph::new(world.depends_on.clone()).unwrap());
    let policy = Arc::new(profile("phase").unwrap());
    let mut schedule = Schedule::new(graph, block_rules(world.jobs), &policy, &[], &|_| true);
    let mut outcomes = world.outcomes.iter().copied().chain(std::iter::repeat(0));
    let mut picks = world.picks.iter().copied().cycle();
    let mut now = Duration::ZERO;
    let mut merges = world.merges.clone();
    let mut end = None;
    let mut happenings = schedule.handle(&Command::Look, now);
    for step in 0.. {
        prop_assert!(step < 3000, "it always ends");
        for happening in &happenings {
            match happening {
                Happening::Started { node } => {
                    let deps = schedule.graph.depends_on(*node);
                    let complete = |dep: &usize| *schedule.state(*dep) == NodeState::Complete;
                    prop_assert!(deps.iter().all(complete), "no task runs before its dependencies");
                }
                Happening::Ended(ended) => end = Some(ended.clone()),
                _ => {}
            }
        }
        if let Some(at) = merges.iter().position(|merge| merge.step <= step || end.is_some()) {
            let merge = merges.remove(at);
            let merged = try_merge(&mut schedule, &merge)?;
            if merged {
                end = None;
            }
            if end.is_none() {
                happenings = schedule.handle(&Command::Look, now);
            } else {
                happenings.clear();
            }
            continue;
        }
        if end.is_some() {
            break;
        }
        let Some(&node) = schedule.running.get(picks.next().unwrap_or(0) % schedule.running.len().max(1))
        else {
            let wake = schedule.wake(now);
            prop_assert!(wake.is_some_and(|wake| wake > now), "nothing runs, and it is known until when");
            now = wake.unwrap_or(now);
            happenings = schedule.handle(&Command::Look, now);
            continue;
        };
        now += Duration::from_secs(3);
        let fail = |reason| Fault::new(reason);
        happenings = match outcomes.next().unwrap_or(0) {
            1 => schedule.handle(&Command::Failed(node, &Failure::new(&fail(Reason::TestFailure), now)), now),
            2 => schedule.handle(&Command::Failed(node, &Failure::new(&fail(Reason::RateLimited), now)), now),
            3 => {
                let fault = fail(Reason::Crash);
                let failure =
                    Failure { worker_lost: true, dispatch: Dispatch::Lost, ..Failure::new(&fault, now) };
                schedule.handle(&Command::Failed(node, &failure), now)
            }
            4 => schedule.handle(&Command::Conflicted(node), now),
            5 => schedule.handle(&Command::Failed(node, &Failure::new(&fail(Reason::AuthError), now)), now),
            _ => schedule.handle(&Command::Succeeded(node), now),
        };
    }
    let is = |node: usize, wanted: &NodeState| schedule.state(node) == wanted;
    let count = schedule.graph.len();
    match end {
        Some(End::Complete) => {
            let done = |node| is(node, &NodeState::Complete) || is(node, &NodeState::Dropped);
            prop_assert!((0..count).all(done));
        }
        Some(End::Halted(_)) => prop_assert!(world.outcomes.contains(&5)),
        Some(End::Blocked(blocked)) => {
            prop_assert!(!blocked.is_empty());
            for node in 0..count {
                prop_assert_eq!(blocked.contains(&node), is(node, &NodeState::Failed));
                prop_assert!(!is(node, &NodeState::Pending));
            }
        }
        Some(End::Stuck { blocked, unreachable }) => {
            let mut closure: Vec<usize> =
                blocked.iter().flat_map(|node| schedule.graph.all_dependents(*node)).collect();
            closure.retain(|node| is(*node, &NodeState::Pending));
            closure.sort_unstable();
            closure.dedup();
            prop_assert_eq!(unreachable, closure, "exactly what waits for a blocked one is unreachable");
        }
        Some(End::Stopped) | None => prop_assert!(false),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn every_campaign_ends_and_every_merge_is_whole_or_not_at_all(world in world()) {
        play(&world)?;
    }
}

fn blocked_chain() -> Schedule {
    let graph = Graph::new(vec![vec![], vec![0], vec![1], vec![]]).unwrap();
    let policy = Arc::new(profile("phase").unwrap());
    let mut all = Schedule::new(Arc::new(graph), block_rules(2), &policy, &[], &|_| true);
    all.handle(&Command::Look, Duration::ZERO);
    for _ in 0..2 {
        let fault = Fault::new(Reason::TestFailure);
        all.handle(&Command::Failed(0, &Failure::new(&fault, Duration::ZERO)), Duration::ZERO);
    }
    all
}

#[test]
fn a_failed_node_is_set_aside_and_the_rest_goes_on_until_it_is_stuck() {
    let mut all = blocked_chain();
    assert_eq!(*all.state(0), NodeState::Failed);
    assert!(!all.is_stopping());
    let end = all.handle(&Command::Succeeded(3), Duration::ZERO);
    let stuck = End::Stuck { blocked: vec![0], unreachable: vec![1, 2] };
    assert!(matches!(end.last(), Some(Happening::Ended(end)) if *end == stuck), "{end:?}");
}

#[test]
fn a_merge_takes_up_what_was_over() {
    let mut all = blocked_chain();
    all.handle(&Command::Succeeded(3), Duration::ZERO);
    let reopen = |is_changed| NodeChange { node: 0, reopen: true, is_changed, ..NodeChange::default() };
    let merge = |change| Merge { changes: vec![change], added: Vec::new() };
    assert_eq!(all.merge(&merge(reopen(false))).unwrap_err(), MergeError::Unchanged(0));
    let cycle = NodeChange { node: 1, depends_on: Some(vec![2]), ..NodeChange::default() };
    assert!(matches!(all.merge(&merge(cycle)).unwrap_err(), MergeError::Graph(GraphError::Cycle(_))));
    let drop_parent = NodeChange { node: 0, is_dropped: true, ..NodeChange::default() };
    let dangling = MergeError::Dangling { node: 1, other: 0 };
    assert_eq!(all.merge(&merge(drop_parent.clone())).unwrap_err(), dangling);
    assert_eq!(
        all.merge(&merge(NodeChange { node: 3, is_dropped: true, ..NodeChange::default() })).unwrap_err(),
        MergeError::Complete(3)
    );
    // 0 is dropped, 1 waits for a new node instead.
    let rewired = NodeChange { node: 1, depends_on: Some(vec![4]), ..NodeChange::default() };
    let whole = Merge { changes: vec![drop_parent, rewired], added: vec![NewNode::default()] };
    for happening in all.merge(&whole).unwrap() {
        all.evolve(&happening);
    }
    for node in [4, 1, 2] {
        let next = all.handle(&Command::Look, Duration::ZERO);
        assert!(matches!(next[..], [Happening::Started { node: at }] if at == node) || next.is_empty());
        let next = all.handle(&Command::Succeeded(node), Duration::ZERO);
        if node == 2 {
            assert!(matches!(next.last(), Some(Happening::Ended(End::Complete))), "{next:?}");
        }
    }
}

#[test]
fn what_is_under_way_is_neither_dropped_nor_changed() {
    let mut all = blocked_chain();
    let fault = Fault::new(Reason::TestFailure);
    assert_eq!(all.running(), [3]);
    let drop = Merge {
        changes: vec![NodeChange { node: 3, is_dropped: true, ..NodeChange::default() }],
        added: Vec::new(),
    };
    assert_eq!(all.merge(&drop).unwrap_err(), MergeError::Running(3));
    assert_eq!(all.merge(&Merge::default()).unwrap().len(), 0);
    all.handle(&Command::Failed(3, &Failure::new(&fault, Duration::ZERO)), Duration::ZERO);
}

#[test]
fn a_credential_halts_and_a_budget_of_its_own_blocks() {
    let policy = Arc::new(profile("phase").unwrap());
    let graph = Arc::new(Graph::new(vec![vec![], vec![]]).unwrap());
    for (reason, dispatch, halts) in [
        (Reason::AuthError, Dispatch::Answered, true),
        (Reason::BudgetExhausted, Dispatch::Answered, false),
        (Reason::BudgetExhausted, Dispatch::NotDispatched, true),
        (Reason::FileConflict, Dispatch::Answered, false),
    ] {
        let mut all = Schedule::new(Arc::clone(&graph), block_rules(2), &policy, &[], &|_| true);
        all.handle(&Command::Look, Duration::ZERO);
        let fault = Fault::new(reason);
        let failure = Failure { dispatch, ..Failure::new(&fault, Duration::ZERO) };
        all.handle(&Command::Failed(0, &failure), Duration::ZERO);
        assert_eq!(all.is_stopping(), halts, "{reason:?} {dispatch:?}");
    }
}
