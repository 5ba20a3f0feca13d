//! Another plan for a campaign that is stuck: tasks are changed, added, dropped and re-opened
//! together, or nothing happens.
//!
//! Pure. What is a valid change of a graph that is worked through is the scheduler's to say
//! ([`Schedule::merge`]); here are tasks and seqs.

use crate::record::CampaignRecord;
use crate::task::{Task, TaskPlan};
use backstop_core::{
    Graph, GraphError, Merge, MergeError, NewNode, NodeChange, OnFailure, Parallel, RetryWhen, Rules,
    Schedule, profile,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan with a re-plan merged into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replanned {
    /// All tasks as they are now.
    pub plan: TaskPlan,
    /// Blocked tasks that begin anew, by seq.
    pub reopened: Vec<String>,
    /// New tasks, by seq.
    pub added: Vec<String>,
    /// Tasks that are not worked on any more, by seq.
    pub dropped: Vec<String>,
}

/// Why a re-plan is refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplanError {
    /// Tasks would wait for each other.
    #[error("cycle detected: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A task would wait for one that is not there.
    #[error("dangling dependency: task {task} waits for {other}, which is not there or is dropped")]
    Dangling {
        /// The task.
        task: String,
        /// What it waits for.
        other: String,
    },
    /// A task that is under way or complete is to be changed or dropped.
    #[error("task {0} is under way or complete: it stays as it is")]
    Begun(String),
    /// Nothing would be different.
    #[error("the re-plan changes nothing that was blocked or waits for it")]
    Nothing,
}

/// Merges a re-plan into a campaign's tasks. Complete tasks stay as they are, whatever it says of
/// them; a blocked task is re-opened only where something of it has changed.
pub fn merge(record: &CampaignRecord, revised: &TaskPlan) -> Result<Replanned, ReplanError> {
    let known = &record.plan.tasks;
    let fresh: Vec<&Task> =
        revised.tasks.iter().filter(|task| !known.iter().any(|other| other.seq == task.seq)).collect();
    let seqs: Vec<&str> = known.iter().chain(fresh.iter().copied()).map(|task| task.seq.as_str()).collect();
    let number: BTreeMap<&str, usize> = seqs.iter().enumerate().map(|(at, seq)| (*seq, at)).collect();
    let numbers = |task: &Task| {
        let of = |other: &String| {
            let dangling = || ReplanError::Dangling { task: task.seq.clone(), other: other.clone() };
            number.get(other.as_str()).copied().ok_or_else(dangling)
        };
        task.depends.iter().map(of).collect::<Result<Vec<usize>, _>>()
    };
    let mut change = Merge::default();
    let mut plan = TaskPlan {
        framework: revised.framework.clone().or(record.plan.framework.clone()),
        ..record.plan.clone()
    };
    for task in &revised.tasks {
        let Some(at) = known.iter().position(|other| other.seq == task.seq) else { continue };
        let status = record.status(&task.seq);
        if status == "complete" || *task == known[at] {
            continue;
        }
        let rewired = sorted(&task.depends) != sorted(&known[at].depends);
        change.changes.push(NodeChange {
            node: at,
            depends_on: rewired.then(|| numbers(task)).transpose()?,
            is_changed: Task { depends: Vec::new(), ..task.clone() }
                != Task { depends: Vec::new(), ..known[at].clone() },
            reopen: status == "blocked",
            is_dropped: false,
        });
        plan.tasks[at] = task.clone();
    }
    for seq in &revised.drop {
        let Some(at) = known.iter().position(|task| task.seq == *seq) else { continue };
        if record.status(seq) == "complete" {
            continue;
        }
        change.changes.retain(|known| known.node != at);
        change.changes.push(NodeChange { node: at, is_dropped: true, ..NodeChange::default() });
    }
    for task in &fresh {
        change.added.push(NewNode { depends_on: numbers(task)?, beside: Vec::new(), repeatable: true });
    }
    if change.is_empty() {
        return Err(ReplanError::Nothing);
    }
    let happenings = schedule(record)?.merge(&change).map_err(|error| replan_error(error, &seqs))?;
    let mut replanned = Replanned::default();
    for happening in happenings {
        if let backstop_core::Happening::Merged { reopened, dropped, .. } = happening {
            let named = |nodes: Vec<usize>| nodes.into_iter().map(|at| seqs[at].to_owned()).collect();
            (replanned.reopened, replanned.dropped) = (named(reopened), named(dropped));
        }
    }
    plan.tasks.extend(fresh.iter().map(|task| (*task).clone()));
    plan.tasks.retain(|task| !replanned.dropped.contains(&task.seq));
    plan.drop = Vec::new();
    replanned.added = fresh.iter().map(|task| task.seq.clone()).collect();
    replanned.plan = plan;
    Ok(replanned)
}

fn sorted(list: &[String]) -> Vec<&String> {
    let mut all: Vec<&String> = list.iter().collect();
    all.sort();
    all
}

/// The schedule of a campaign's tasks as they stand.
fn schedule(record: &CampaignRecord) -> Result<Schedule, ReplanError> {
    let tasks = &record.plan.tasks;
    let seqs: Vec<&str> = tasks.iter().map(|task| task.seq.as_str()).collect();
    let number = |seq: &String| seqs.iter().position(|known| known == seq);
    let depends_on = tasks.iter().map(|task| task.depends.iter().filter_map(number).collect()).collect();
    let graph = Graph::new(depends_on).map_err(|error| replan_error(MergeError::Graph(error), &seqs))?;
    let complete: Vec<bool> = seqs.iter().map(|seq| record.status(seq) == "complete").collect();
    let blocked: Vec<usize> = (0..seqs.len()).filter(|at| record.status(seqs[*at]) == "blocked").collect();
    let rules = Rules {
        jobs: 1,
        parallel: Parallel::Auto,
        retry: RetryWhen::Immediate,
        on_failure: OnFailure::BlockNode,
    };
    let policy = Arc::new(profile("phase").unwrap_or_else(|| unreachable!("it is one of ours")));
    Ok(Schedule::new(Arc::new(graph), rules, &policy, &complete, &|_| true).with_blocked(&blocked))
}

/// Why it is refused, with the names of the tasks.
fn replan_error(error: MergeError, seqs: &[&str]) -> ReplanError {
    let seq = |at: usize| seqs.get(at).map_or_else(|| format!("node {at}"), |seq| (*seq).to_owned());
    match error {
        MergeError::Graph(GraphError::Cycle(cycle)) => {
            ReplanError::Cycle(cycle.into_iter().map(seq).collect())
        }
        MergeError::Graph(GraphError::Unknown { node, other }) | MergeError::Dangling { node, other } => {
            ReplanError::Dangling { task: seq(node), other: seq(other) }
        }
        MergeError::Running(at) | MergeError::Complete(at) => ReplanError::Begun(seq(at)),
        MergeError::Unchanged(_) | MergeError::Stopped => ReplanError::Nothing,
    }
}
