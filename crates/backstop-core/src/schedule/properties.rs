//! Random graphs with random faults that grow at random times: they always end, and never do what
//! they must not.

use super::*;
use crate::{Dispatch, Fault, Reason, profile};
use proptest::prelude::*;

/// What an attempt comes to.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Success,
    Fault(Reason),
    Lost,
    Conflict,
    Stop,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let reasons = prop::sample::select(vec![
        Reason::TestFailure,
        Reason::RateLimited,
        Reason::NetworkTransient,
        Reason::Timeout,
        Reason::Unknown,
        Reason::Crash,
        Reason::AuthError,
        Reason::QuotaExhausted,
    ]);
    prop_oneof![
        12 => Just(Outcome::Success),
        6 => reasons.prop_map(Outcome::Fault),
        1 => Just(Outcome::Lost),
        1 => Just(Outcome::Conflict),
        1 => Just(Outcome::Stop),
    ]
}

#[derive(Debug, Clone)]
struct World {
    depends_on: Vec<Vec<usize>>,
    beside: Vec<Vec<usize>>,
    complete: Vec<bool>,
    rules: Rules,
    outcomes: Vec<Outcome>,
    /// Which of those that run ends next.
    picks: Vec<usize>,
    growths: Vec<GrowthAt>,
}

/// Nodes and dependencies that come while the graph is worked through. Numbers are taken modulo
/// what there is.
#[derive(Debug, Clone)]
struct GrowthAt {
    /// Before which step.
    step: usize,
    /// What each new node waits for.
    nodes: Vec<Vec<usize>>,
    beside: Vec<usize>,
    /// Old nodes, each of which is to wait for a new one. It may be a cycle, or come too late: then
    /// all of it is refused.
    edges: Vec<(usize, usize)>,
}

prop_compose! {
    fn growth()(
        step in 0usize..20,
        nodes in prop::collection::vec(prop::collection::vec(0usize..40, 0..3), 1..4),
        beside in prop::collection::vec(0usize..40, 0..4),
        edges in prop::collection::vec((0usize..40, 0usize..4), 0..2),
    ) -> GrowthAt {
        GrowthAt { step, nodes, beside, edges }
    }
}

impl GrowthAt {
    fn of(&self, graph: &Graph) -> Growth {
        let before = graph.len();
        let node = |(at, deps): (usize, &Vec<usize>)| {
            // Earlier ones only: no cycle among the new ones themselves.
            let deps = deps.iter().map(|dep| dep % (before + at).max(1)).filter(|dep| *dep < before + at);
            let beside = self.beside.iter().map(|other| other % before).collect();
            NewNode { depends_on: deps.collect(), beside, repeatable: true }
        };
        let edge = |(old, new): &(usize, usize)| (old % before, before + new % self.nodes.len());
        Growth {
            nodes: self.nodes.iter().enumerate().map(node).collect(),
            edges: self.edges.iter().map(edge).collect(),
        }
    }
}

prop_compose! {
    fn world()(count in 1usize..12)(
        edges in prop::collection::vec((0..count, 0..count), 0..count * 2),
        pairs in prop::collection::vec((0..count, 0..count), 0..count * 2),
        complete in prop::collection::vec(prop::bool::weighted(0.1), count),
        jobs in 1usize..5, auto in any::<bool>(), immediate in any::<bool>(),
        outcomes in prop::collection::vec(outcome(), 1..200),
        picks in prop::collection::vec(0usize..8, 1..50),
        growths in prop::collection::vec(growth(), 0..4),
        count in Just(count),
    ) -> World {
        let mut depends_on = vec![Vec::new(); count];
        // From a higher number to a lower one: no cycle.
        for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
            depends_on[a.max(b)].push(a.min(b));
        }
        let mut beside = vec![Vec::new(); count];
        for (a, b) in pairs.into_iter().filter(|(a, b)| a != b) {
            beside[a].push(b);
        }
        let rules = Rules {
            jobs,
            parallel: if auto { Parallel::Auto } else { Parallel::Declared },
            retry: if immediate { RetryWhen::Immediate } else { RetryWhen::AfterSiblings },
            on_failure: OnFailure::HaltRun,
        };
        World { depends_on, beside, complete, rules, outcomes, picks, growths }
    }
}

/// What was seen from outside.
struct Seen {
    complete: Vec<bool>,
    running: Vec<usize>,
    own_failures: Vec<u32>,
    waits: Vec<u32>,
    conflicts: Vec<u32>,
    /// Those that were running when a node failed, with the attempt they were at.
    siblings: Vec<Vec<(usize, u32)>>,
    attempts: Vec<u32>,
    ended: Option<End>,
}

impl Seen {
    fn resize(&mut self, count: usize) {
        self.complete.resize(count, false);
        for counts in [&mut self.own_failures, &mut self.waits, &mut self.conflicts, &mut self.attempts] {
            counts.resize(count, 0);
        }
        self.siblings.resize(count, Vec::new());
    }

    fn note(&mut self, world: &World, graph: &Graph, happening: &Happening) -> Result<(), TestCaseError> {
        match happening {
            Happening::Started { node } => {
                prop_assert!(self.ended.is_none());
                prop_assert!(!self.complete[*node], "complete phases are not run again");
                prop_assert!(!self.running.contains(node));
                prop_assert!(
                    graph.depends_on(*node).iter().all(|dep| self.complete[*dep]),
                    "dependencies first"
                );
                prop_assert!(self.running.len() < world.rules.jobs);
                if world.rules.parallel == Parallel::Declared {
                    prop_assert!(self.running.iter().all(|other| graph.are_beside(*node, *other)));
                }
                for (sibling, attempt) in self.siblings[*node].drain(..) {
                    let same = self.running.contains(&sibling) && self.attempts[sibling] == attempt;
                    prop_assert!(!same, "a retry waits for those that were running");
                }
                self.running.push(*node);
                self.attempts[*node] += 1;
            }
            Happening::Completed { node } => {
                self.complete[*node] = true;
                self.running.retain(|other| other != node);
            }
            Happening::Decided { node, verdict, state, .. } => {
                self.running.retain(|other| other != node);
                if verdict.outside {
                    self.waits[*node] += u32::from(*state != NodeState::Running);
                } else {
                    self.own_failures[*node] += 1;
                    if world.rules.retry == RetryWhen::AfterSiblings {
                        self.siblings[*node] =
                            self.running.iter().map(|other| (*other, self.attempts[*other])).collect();
                    }
                }
            }
            Happening::Again { node } => {
                self.conflicts[*node] += 1;
                self.running.retain(|other| other != node);
            }
            Happening::GaveUp { node, .. } | Happening::Dropped { node } => {
                self.running.retain(|other| other != node);
            }
            Happening::Grew { graph, .. } | Happening::Merged { graph, .. } => self.resize(graph.len()),
            Happening::Blocked { .. } | Happening::Stopping => {}
            Happening::Ended(end) => self.ended = Some(end.clone()),
        }
        Ok(())
    }
}

fn play(world: &World) -> Result<(), TestCaseError> {
    let graph = Arc::new(Graph::new(world.depends_on.clone()).unwrap().with_beside(&world.beside));
    // What is complete from the start has its dependencies complete, too.
    let mut complete = world.complete.clone();
    for node in 0..graph.len() {
        complete[node] = complete[node] && graph.depends_on(node).iter().all(|dep| complete[*dep]);
    }
    let policy = Arc::new(profile("phase").unwrap());
    let mut schedule = Schedule::new(Arc::clone(&graph), world.rules, &policy, &complete, &|_| true);
    let mut folded = schedule.clone();
    let mut seen = Seen {
        complete,
        running: Vec::new(),
        own_failures: Vec::new(),
        waits: Vec::new(),
        conflicts: Vec::new(),
        siblings: Vec::new(),
        attempts: Vec::new(),
        ended: None,
    };
    seen.resize(graph.len());
    let mut now = Duration::ZERO;
    let mut outcomes = world.outcomes.iter().copied().chain(std::iter::repeat(Outcome::Success));
    let mut picks = world.picks.iter().copied().cycle();
    let mut happenings = schedule.handle(&Command::Look, now);
    let mut stopped = false;
    for step in 0.. {
        prop_assert!(step < 2000, "it always ends");
        for happening in &happenings {
            folded.evolve(happening);
            seen.note(world, &folded.graph, happening)?;
        }
        prop_assert_eq!(
            format!("{schedule:?}"),
            format!("{folded:?}"),
            "the state is the fold of what happened"
        );
        if seen.ended.is_some() {
            break;
        }
        let growths = world.growths.iter().filter(|growth| growth.step == step);
        let grown = growths.map(|growth| grow(&mut schedule, growth, now)).collect::<Result<Vec<_>, _>>()?;
        if grown.iter().any(|happenings| !happenings.is_empty()) {
            happenings = grown.concat();
            continue;
        }
        let graph = Arc::clone(&schedule.graph);
        let count = graph.len();
        // What is done again after a conflict is done alone: the others wait.
        let alone = (0..count).any(|node| {
            schedule.runs_alone(node) && (schedule.is_running(node) || schedule.is_ready(node, now))
        });
        if alone && !schedule.is_stopping() {
            prop_assert!(!seen.running.is_empty(), "it begins when nothing else runs");
        }
        let free = seen.running.len() < world.rules.jobs && !schedule.is_stopping() && !alone;
        if free {
            let wasted = (0..count).find(|node| schedule.may_start(*node, &seen.running, now));
            prop_assert_eq!(wasted, None, "no free slot is wasted");
            let beside = |node: usize| {
                world.rules.parallel == Parallel::Auto
                    || seen.running.iter().all(|other| graph.are_beside(node, *other))
            };
            let untouched = (0..count).find(|node| {
                let idle = !seen.complete[*node] && seen.attempts[*node] == 0;
                idle && beside(*node) && graph.depends_on(*node).iter().all(|dep| seen.complete[*dep])
            });
            prop_assert_eq!(untouched, None, "what could begin has begun");
        }
        if seen.running.is_empty() {
            let wake = schedule.wake(now);
            prop_assert!(wake.is_some_and(|wake| wake > now), "nothing runs, and it is known until when");
            now = wake.unwrap_or(now);
            happenings = schedule.handle(&Command::Look, now);
            continue;
        }
        let node = seen.running[picks.next().unwrap_or(0) % seen.running.len()];
        now += Duration::from_secs(7);
        happenings = match outcomes.next().unwrap_or(Outcome::Success) {
            Outcome::Success => schedule.handle(&Command::Succeeded(node), now),
            Outcome::Fault(reason) => {
                let fault = Fault::new(reason);
                schedule.handle(&Command::Failed(node, &Failure::new(&fault, now)), now)
            }
            Outcome::Lost => {
                let fault = Fault::new(Reason::Crash);
                let failure =
                    Failure { worker_lost: true, dispatch: Dispatch::Lost, ..Failure::new(&fault, now) };
                schedule.handle(&Command::Failed(node, &failure), now)
            }
            Outcome::Conflict => schedule.handle(&Command::Conflicted(node), now),
            Outcome::Stop => {
                stopped = true;
                schedule.handle(&Command::Stop, now)
            }
        };
    }
    for node in 0..schedule.graph.len() {
        prop_assert!(seen.own_failures[node] <= 2, "one retry for its own mistakes");
        prop_assert!(seen.waits[node] <= 5 && seen.conflicts[node] <= 1);
    }
    match seen.ended {
        Some(End::Complete) => prop_assert!(seen.complete.iter().all(|complete| *complete)),
        Some(End::Stopped) => prop_assert!(stopped),
        Some(End::Halted(failed)) => {
            prop_assert!(!failed.is_empty());
            for node in failed {
                for other in schedule.graph.all_dependents(node) {
                    let blocked = matches!(schedule.state(other), NodeState::Blocked { .. });
                    prop_assert!(blocked, "what waits for a failed one is blocked");
                }
            }
        }
        // A graph whose failures halt it never ends like this.
        Some(End::Blocked(_) | End::Stuck { .. }) | None => prop_assert!(false),
    }
    Ok(())
}

/// Adds what comes now. It is refused where it is a cycle or comes too late, and for no other
/// reason.
fn grow(schedule: &mut Schedule, growth: &GrowthAt, now: Duration) -> Result<Vec<Happening>, TestCaseError> {
    let growth = growth.of(&schedule.graph);
    let begun = |(node, _): &(usize, usize)| *schedule.state(*node) != NodeState::Pending;
    let mut happenings = match schedule.grow(&growth) {
        Ok(happenings) => {
            prop_assert!(!growth.edges.iter().any(begun), "nobody waits for one that came after its start");
            happenings
        }
        Err(GrowthError::Begun { node, other }) => {
            prop_assert!(begun(&(node, other)));
            return Ok(Vec::new());
        }
        Err(GrowthError::Graph(GraphError::Cycle(cycle))) => {
            let wait = |node: usize, other: usize| {
                let new = node.checked_sub(schedule.graph.len()).map(|at| &growth.nodes[at].depends_on[..]);
                let old = || schedule.graph.depends_on(node);
                new.unwrap_or_else(old).contains(&other) || growth.edges.contains(&(node, other))
            };
            prop_assert!(cycle.windows(2).all(|pair| wait(pair[0], pair[1])), "{:?}", cycle);
            prop_assert_eq!(cycle.first(), cycle.last());
            return Ok(Vec::new());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let before: Vec<NodeState> = schedule.nodes.iter().map(|node| node.state.clone()).collect();
    happenings.iter().for_each(|happening| schedule.evolve(happening));
    for (node, state) in before.iter().enumerate() {
        let now_blocked = matches!(schedule.state(node), NodeState::Blocked { .. });
        prop_assert!(schedule.state(node) == state || (now_blocked && *state == NodeState::Pending));
    }
    let next = schedule.handle(&Command::Look, now);
    happenings.extend(next);
    Ok(happenings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn every_graph_ends_and_keeps_the_rules(world in world()) {
        play(&world)?;
    }
}

fn schedule(deps: &[&[usize]], beside: &[&[usize]], rules: Rules) -> Schedule {
    let own = |lists: &[&[usize]]| lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>();
    let graph = Graph::new(own(deps)).unwrap().with_beside(&own(beside));
    Schedule::new(Arc::new(graph), rules, &Arc::new(profile("phase").unwrap()), &[], &|_| true)
}

fn started(happenings: &[Happening]) -> Vec<usize> {
    let node = |happening: &Happening| match happening {
        Happening::Started { node } => Some(*node),
        _ => None,
    };
    happenings.iter().filter_map(node).collect()
}

fn fail(schedule: &mut Schedule, node: usize, reason: Reason) -> Vec<Happening> {
    let fault = Fault::new(reason);
    schedule.handle(&Command::Failed(node, &Failure::new(&fault, Duration::ZERO)), Duration::ZERO)
}

const TWO: Rules = Rules {
    jobs: 2,
    parallel: Parallel::Declared,
    retry: RetryWhen::AfterSiblings,
    on_failure: OnFailure::HaltRun,
};

#[test]
fn siblings_finish_before_a_retry_and_failed_ones_retry_side_by_side() {
    let mut all = schedule(&[&[], &[]], &[&[1], &[]], TWO);
    assert_eq!(started(&all.handle(&Command::Look, Duration::ZERO)), [0, 1]);
    assert_eq!(started(&fail(&mut all, 0, Reason::TestFailure)), [0usize; 0]);
    assert_eq!(started(&fail(&mut all, 1, Reason::LintError)), [0, 1]);
    assert_eq!(all.chance(0), (2, 2));
}

#[test]
fn an_immediate_retry_waits_for_nobody() {
    let rules = Rules { retry: RetryWhen::Immediate, ..TWO };
    let mut all = schedule(&[&[], &[]], &[&[1], &[]], rules);
    all.handle(&Command::Look, Duration::ZERO);
    assert_eq!(started(&fail(&mut all, 0, Reason::TestFailure)), [0]);
}

#[test]
fn only_declared_ones_run_side_by_side_unless_the_graph_alone_counts() {
    let mut declared = schedule(&[&[], &[], &[]], &[&[2], &[], &[]], TWO);
    assert_eq!(started(&declared.handle(&Command::Look, Duration::ZERO)), [0, 2]);
    let mut auto = schedule(&[&[], &[], &[]], &[&[2], &[], &[]], Rules { parallel: Parallel::Auto, ..TWO });
    assert_eq!(started(&auto.handle(&Command::Look, Duration::ZERO)), [0, 1]);
}

#[test]
fn a_credential_halts_without_a_retry_and_what_waits_is_blocked() {
    let mut all = schedule(&[&[], &[0], &[1]], &[], TWO);
    all.handle(&Command::Look, Duration::ZERO);
    let end = fail(&mut all, 0, Reason::AuthError);
    assert!(matches!(end.last(), Some(Happening::Ended(End::Halted(failed))) if *failed == [0]));
    assert_eq!(*all.state(2), NodeState::Blocked { by: 0 });
}

#[test]
fn what_did_not_go_together_is_done_again_alone() {
    let mut all = schedule(&[&[], &[], &[]], &[&[1, 2], &[0, 2], &[0, 1]], Rules { jobs: 3, ..TWO });
    assert_eq!(started(&all.handle(&Command::Look, Duration::ZERO)), [0, 1, 2]);
    all.handle(&Command::Succeeded(0), Duration::ZERO);
    assert_eq!(started(&all.handle(&Command::Conflicted(1), Duration::ZERO)), [0; 0], "2 still runs");
    assert_eq!(started(&all.handle(&Command::Conflicted(2), Duration::ZERO)), [1], "one at a time");
    assert_eq!(started(&all.handle(&Command::Succeeded(1), Duration::ZERO)), [2]);
    let end = all.handle(&Command::Succeeded(2), Duration::ZERO);
    assert!(matches!(end.last(), Some(Happening::Ended(End::Complete))));
}

proptest! {
    /// Phases that edit the same lines conflict when another one came in since they began. Each can
    /// be finished alone, so all are.
    #[test]
    fn every_plan_that_can_be_finished_one_phase_at_a_time_finishes(
        lines in prop::collection::vec(prop::collection::btree_set(0usize..6, 1..4), 1..9),
        edges in prop::collection::vec((0usize..8, 0usize..8), 0..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 64),
        jobs in 1usize..9,
    ) {
        let n = lines.len();
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (a, b) in edges.into_iter().filter(|(a, b)| a < b && *b < n) {
            if !on[b].contains(&a) {
                on[b].push(a);
            }
        }
        let on: Vec<&[usize]> = on.iter().map(Vec::as_slice).collect();
        let mut all = schedule(&on, &[], Rules { jobs, parallel: Parallel::Auto, ..TWO });
        // What came in, and how much of it each running phase knows.
        let (mut came_in, mut knows): (Vec<usize>, Vec<usize>) = (Vec::new(), vec![0; n]);
        let mut told = all.handle(&Command::Look, Duration::ZERO);
        for pick in order {
            for node in started(&told) {
                knows[node] = came_in.len();
            }
            if all.running().is_empty() {
                break;
            }
            let node = *pick.get(all.running());
            let clashes = came_in[knows[node]..].iter().any(|other| !lines[*other].is_disjoint(&lines[node]));
            told = all.handle(
                &if clashes { Command::Conflicted(node) } else { Command::Succeeded(node) },
                Duration::ZERO,
            );
            if !clashes {
                came_in.push(node);
            }
        }
        prop_assert!((0..n).all(|node| *all.state(node) == NodeState::Complete), "{:?}", came_in);
    }
}

#[test]
fn a_second_conflict_is_one_too_many() {
    let mut all = schedule(&[&[]], &[], TWO);
    all.handle(&Command::Look, Duration::ZERO);
    assert_eq!(started(&all.handle(&Command::Conflicted(0), Duration::ZERO)), [0]);
    let end = all.handle(&Command::Conflicted(0), Duration::ZERO);
    assert!(matches!(end.last(), Some(Happening::Ended(End::Halted(_)))));
    assert_eq!(all.chance(0), (1, 2), "a conflict uses up none of its chances");
}

#[test]
fn new_nodes_wait_for_their_dependencies_and_old_ones_go_on() {
    let mut all = schedule(&[&[], &[0]], &[], TWO);
    all.handle(&Command::Look, Duration::ZERO);
    let new = |deps: &[usize]| NewNode { depends_on: deps.to_vec(), ..NewNode::default() };
    let growth = Growth { nodes: vec![new(&[]), new(&[2])], edges: vec![(1, 2)] };
    for happening in all.grow(&growth).unwrap() {
        all.evolve(&happening);
    }
    assert_eq!(*all.state(0), NodeState::Running);
    assert_eq!(started(&all.handle(&Command::Look, Duration::ZERO)), [0usize; 0], "none is declared beside");
    assert_eq!(started(&all.handle(&Command::Succeeded(0), Duration::ZERO)), [2], "1 waits for the new one");
    assert_eq!(started(&all.handle(&Command::Succeeded(2), Duration::ZERO)), [1]);
    assert_eq!(started(&all.handle(&Command::Succeeded(1), Duration::ZERO)), [3]);
    let end = all.handle(&Command::Succeeded(3), Duration::ZERO);
    assert!(matches!(end.last(), Some(Happening::Ended(End::Complete))));
    assert_eq!(all.grow(&growth).unwrap_err(), GrowthError::Over);
}

#[test]
fn growth_that_is_a_cycle_or_comes_too_late_is_refused_as_a_whole() {
    let mut all = schedule(&[&[], &[0]], &[], TWO);
    all.handle(&Command::Look, Duration::ZERO);
    let new = |deps: &[usize]| NewNode { depends_on: deps.to_vec(), ..NewNode::default() };
    let cycle = Growth { nodes: vec![new(&[1])], edges: vec![(1, 2)] };
    assert_eq!(all.grow(&cycle).unwrap_err(), GrowthError::Graph(GraphError::Cycle(vec![1, 2, 1])));
    let late = Growth { nodes: vec![new(&[])], edges: vec![(0, 2)] };
    assert_eq!(all.grow(&late).unwrap_err(), GrowthError::Begun { node: 0, other: 2 });
    assert!(all.grow(&Growth::default()).unwrap().is_empty());
    assert_eq!(all.graph().len(), 2);
}

#[test]
fn what_waits_for_a_failed_one_is_blocked_from_the_start() {
    let mut all = schedule(&[&[], &[]], &[&[1], &[]], TWO);
    all.handle(&Command::Look, Duration::ZERO);
    fail(&mut all, 0, Reason::AuthError);
    let nodes = vec![
        NewNode { depends_on: vec![0], ..NewNode::default() },
        NewNode { depends_on: vec![2], ..NewNode::default() },
        NewNode::default(),
    ];
    for happening in all.grow(&Growth { nodes, edges: Vec::new() }).unwrap() {
        all.evolve(&happening);
    }
    assert_eq!([all.state(2), all.state(3)], [&NodeState::Blocked { by: 0 }; 2]);
    assert_eq!(
        *all.state(4),
        NodeState::Pending,
        "nothing begins any more, and nothing keeps it from it later"
    );
    let end = all.handle(&Command::Succeeded(1), Duration::ZERO);
    assert!(matches!(end.last(), Some(Happening::Ended(End::Halted(failed))) if *failed == [0]));
}
