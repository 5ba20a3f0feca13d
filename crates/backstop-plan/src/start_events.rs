//! The events that start or resume a run, and what a person should know about a resume.
//!
//! Pure: the plan as it is now, the recorded run and edits of state files go in; events and notes
//! come out.

use crate::document::{Format, Plan, Status};
use crate::record::RunRecord;
use crate::view::Edit;
use backstop_core::{EventKind, PhaseRecord, PlanRecord, SafeText};
use backstop_runtime::host::{NodeStatus, SKIPPED};

/// The name of the isolation mode in which phases run in the project's folder itself.
pub const IN_PLACE: &str = "none";

/// How a run commits and isolates its phases, as `plan.loaded` records it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mode {
    /// The commit mode, by name.
    pub commit: String,
    /// The isolation mode: `worktree` or `none`.
    pub isolation: String,
    /// The commit that the run starts from, in a repository.
    pub base: Option<String>,
    /// The branch that finished work is committed to, in worktree mode.
    pub branch: Option<String>,
    /// The command that resumes the run.
    pub resume: String,
    /// How many attempts a phase has for its own mistakes.
    pub max_attempts: u32,
    /// Without isolation: paths that differed from the last commit before the run started. They are
    /// the user's.
    pub before: Vec<SafeText>,
}

/// The plan as `plan.loaded` records it.
pub fn plan_record(plan: &Plan, mode: &Mode) -> PlanRecord {
    let id = |at: &usize| plan.phases[*at].id.key().as_str().to_owned();
    let phase = |phase: &crate::document::Phase| PhaseRecord {
        id: phase.id.key().as_str().to_owned(),
        shown: SafeText::new(phase.id.shown()),
        name: phase.name.clone(),
        hash: phase.hash.clone(),
        depends_on: phase.depends_on.iter().map(id).collect(),
        parallel_with: phase.parallel_with.iter().map(id).collect(),
        // A lost attempt in a worktree harms nothing when it is repeated; without isolation the
        // plan has to allow it.
        repeatable: phase.settings.repeatable.unwrap_or(mode.isolation != IN_PLACE),
        tasks: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
    };
    PlanRecord {
        table: plan.table_hash.clone(),
        defaults: plan.defaults_hash.clone(),
        phases: plan.phases.iter().map(phase).collect(),
        commit: mode.commit.clone(),
        isolation: mode.isolation.clone(),
        base: mode.base.clone(),
        branch: mode.branch.clone(),
        resume: mode.resume.clone(),
        max_attempts: mode.max_attempts,
        before: mode.before.clone(),
        format: (plan.format != Format::Backstop).then(|| plan.format.name().to_owned()),
        by: (plan.format != Format::Backstop).then(|| plan.by.name().to_owned()),
    }
}

/// The events for what a new run's plan marks as done or skipped: it is not run. And what a person
/// is told about it.
pub fn marked(plan: &Plan) -> (Vec<EventKind>, Option<String>) {
    let (mut kinds, mut done, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for phase in &plan.phases {
        let state = match phase.status {
            Status::Complete => {
                done.push(phase.id.shown());
                NodeStatus::Complete.name()
            }
            Status::Skipped => {
                skipped.push(phase.id.shown());
                SKIPPED
            }
            _ => continue,
        };
        kinds.push(state_entered(phase.id.key().as_str(), state));
    }
    let mut parts = Vec::new();
    for (list, word) in [(&done, "done"), (&skipped, "skipped")] {
        const NAMED_MAX: usize = 12;
        if !list.is_empty() {
            let more = list.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = list.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
            parts.push(format!("{word} by the plan's own marks: {names}{more}"));
        }
    }
    let note = (!parts.is_empty()).then(|| {
        format!("not run: {} (`--fresh` or `backstop plan reset PHASE` runs them)", parts.join("; "))
    });
    (kinds, note)
}

/// Who overrides something, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The person or agent.
    pub by: SafeText,
    /// The rationale.
    pub why: SafeText,
}

impl Person {
    /// The event that records an override.
    pub fn overrides(&self, what: impl Into<String>) -> EventKind {
        EventKind::Override { by: self.by.clone(), what: SafeText::new(what), rationale: self.why.clone() }
    }
}

/// What a person is told when a run is resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Phases that were running when Backstop was ended; they are run again.
    pub cut_off: Vec<SafeText>,
    /// Phases whose work was delivered and only has to be integrated.
    pub handed_in: Vec<SafeText>,
    /// Complete phases whose text in the plan has changed since.
    pub changed: Vec<SafeText>,
    /// Phases that are no longer in the plan.
    pub gone: Vec<SafeText>,
    /// Phases that are new in the plan.
    pub added: Vec<SafeText>,
    /// Statuses that somebody changed in state files, in words.
    pub edited: Vec<SafeText>,
}

/// The events that resume a run, and what to tell a person. `record` is what was recorded so far.
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
        // The work of a phase that is no longer in the plan stays on its ref.
        if phase.node.is_delivered() && new.phases.iter().any(|kept| kept.id == phase.plan.id) {
            resumed.handed_in.push(phase.plan.shown.clone());
        }
        if phase.node.is_cut_off() {
            resumed.cut_off.push(phase.plan.shown.clone());
            kinds.push(EventKind::AttemptLost {
                operation: SafeText::new(phase.plan.id.clone()),
                attempt: phase.node.total,
                why: SafeText::new("Backstop was ended while it ran"),
                delivery: None,
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
    // Last, so that complete phases keep the hash that they were completed with.
    kinds.push(EventKind::PlanLoaded { plan: Box::new(new) });
    (kinds, resumed)
}

/// The events that set phases back to pending, or skip them. `word` is the command: `reset`,
/// `retry` or `skip`.
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
