//! How a run begins or goes on: what is recorded first, and what a person should know of it.
//!
//! Pure: the plan as it is now, what was recorded, and what somebody edited go in; events and notes come out.

use crate::document::Plan;
use crate::record::RunRecord;
use crate::view::Edit;
use backstop_core::{EventKind, PhaseRecord, PlanRecord, SafeText};
use backstop_runtime::host::{NodeStatus, SKIPPED};

/// The isolation of a run whose phases run in the folder itself.
pub const IN_PLACE: &str = "none";

/// How a run is run, as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mode {
    /// How finished phases are committed.
    pub commit: String,
    /// Where phases run.
    pub isolation: String,
    /// The commit that the run begins from, where there is one.
    pub base: Option<String>,
    /// The branch that finished work goes to, where there is one.
    pub branch: Option<String>,
    /// The command that goes on.
    pub resume: String,
    /// How many attempts a phase has for its own mistakes.
    pub max_attempts: u32,
    /// Paths that differed from the last commit before anything was done, where phases run in the folder itself.
    pub before: Vec<SafeText>,
}

/// The plan as it is recorded.
pub fn plan_record(plan: &Plan, mode: &Mode) -> PlanRecord {
    let id = |at: &usize| plan.phases[*at].id.key().as_str().to_owned();
    let phase = |phase: &crate::document::Phase| PhaseRecord {
        id: phase.id.key().as_str().to_owned(),
        shown: SafeText::new(phase.id.shown()),
        name: phase.name.clone(),
        hash: phase.hash.clone(),
        depends_on: phase.depends_on.iter().map(id).collect(),
        parallel_with: phase.parallel_with.iter().map(id).collect(),
        // In a worktree nothing is harmed by doing it again; in the folder itself the plan has to say so.
        repeatable: phase.settings.repeatable.unwrap_or(mode.isolation != IN_PLACE),
        tasks: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
    };
    PlanRecord {
        table: plan.table_hash.clone(),
        phases: plan.phases.iter().map(phase).collect(),
        commit: mode.commit.clone(),
        isolation: mode.isolation.clone(),
        base: mode.base.clone(),
        branch: mode.branch.clone(),
        resume: mode.resume.clone(),
        max_attempts: mode.max_attempts,
        before: mode.before.clone(),
    }
}

/// Somebody who overrides something, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Who.
    pub by: SafeText,
    /// Why.
    pub why: SafeText,
}

impl Person {
    /// What is recorded of an override.
    pub fn overrides(&self, what: impl Into<String>) -> EventKind {
        EventKind::Override { by: self.by.clone(), what: SafeText::new(what), rationale: self.why.clone() }
    }
}

/// What a person is told when a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Phases that were cut off and are run again.
    pub cut_off: Vec<SafeText>,
    /// Phases whose work was finished and is only put in.
    pub handed_in: Vec<SafeText>,
    /// Finished phases whose text has changed since.
    pub changed: Vec<SafeText>,
    /// Phases that are no longer in the plan.
    pub gone: Vec<SafeText>,
    /// Phases that are new in the plan.
    pub added: Vec<SafeText>,
    /// What somebody set by hand.
    pub edited: Vec<SafeText>,
}

/// What is recorded when a run goes on. `record` is what was recorded so far.
pub fn resume(
    record: &RunRecord,
    new: PlanRecord,
    edits: &[Edit],
    rerun_changed: bool,
    person: &Person,
) -> (Vec<EventKind>, Resumed) {
    let mut kinds = Vec::new();
    let mut resumed = Resumed::default();
    for phase in record.all_phases() {
        // One that is no longer in the plan stays on its ref.
        if phase.node.is_delivered() && new.phases.iter().any(|kept| kept.id == phase.plan.id) {
            resumed.handed_in.push(phase.plan.shown.clone());
        }
        if phase.node.is_cut_off() {
            resumed.cut_off.push(phase.plan.shown.clone());
            kinds.push(EventKind::AttemptLost {
                operation: SafeText::new(phase.plan.id.clone()),
                attempt: phase.node.total,
                why: SafeText::new("Backstop was ended while it ran"),
            });
        }
    }
    kinds.push(EventKind::RunResumed {});
    for edit in edits {
        let phase = record.phase(edit.phase);
        resumed.edited.push(SafeText::new(edit.what.clone()));
        let edited = Person { by: "state file".into(), ..person.clone() };
        kinds.push(edited.overrides(edit.what.clone()));
        let state =
            if edit.status == NodeStatus::Complete { NodeStatus::Complete } else { NodeStatus::Pending };
        kinds.push(state_entered(&phase.plan.id, state.name()));
    }
    for phase in &new.phases {
        let Some(known) = record.phase_of(&phase.id) else {
            resumed.added.push(phase.shown.clone());
            continue;
        };
        let finished = known.node.status == NodeStatus::Complete && !known.node.skipped;
        if finished && known.finished_hash.is_some_and(|hash| hash != phase.hash) {
            resumed.changed.push(phase.shown.clone());
            if rerun_changed {
                kinds.push(
                    person.overrides(format!("--rerun-changed: {} is run again", phase.shown.line(40))),
                );
                kinds.push(state_entered(&phase.id, NodeStatus::Pending.name()));
            }
        }
    }
    let kept = |id: &String| new.phases.iter().any(|phase| phase.id == *id);
    let order = record.progress.order.iter();
    let gone = order.filter(|id| !kept(id)).filter_map(|id| record.phase_of(id));
    resumed.gone.extend(gone.map(|phase| phase.plan.shown.clone()));
    // Last: what is finished keeps the hash that it was finished with.
    kinds.push(EventKind::PlanLoaded { plan: Box::new(new) });
    (kinds, resumed)
}

/// What is recorded when phases are set back or passed over by somebody.
pub fn set_phases(record: &RunRecord, phases: &[usize], word: &str, person: &Person) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    for &at in phases {
        let phase = record.phase(at);
        let state = if word == "skip" { SKIPPED } else { NodeStatus::Pending.name() };
        kinds.push(person.overrides(format!("plan {word} {}", phase.plan.shown.line(40))));
        kinds.push(state_entered(&phase.plan.id, state));
    }
    kinds
}

fn state_entered(id: &str, state: &str) -> EventKind {
    EventKind::StateEntered {
        operation: Some(SafeText::new(id)),
        state: state.to_owned(),
        error_type: None,
        context: None,
    }
}
