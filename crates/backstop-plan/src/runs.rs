//! The runs of plans in a project: found, and their phases set back or passed over by a person.

use crate::document::PhaseId;
use crate::observers::mark;
use crate::record::{PhaseProgress, RunRecord};
use crate::start::{RunError, last_run, lock_name, path_in_project, person, view_name};
use crate::start_events;
use crate::view::{ViewErrors, ViewFolder};
use backstop_core::{EventKind, RunId, SafeText};
use backstop_report::plan::{ChangedPhase, ChangedPhases};
use backstop_runtime::host::NodeStatus;
use backstop_runtime::{Opening, Project, Recorder};
use backstop_store::{Held, Journal, RunFilter};
use backstop_work::git::Sha;
use std::path::{Path, PathBuf};

/// How many runs are looked at.
const RUNS_MAX: u32 = 1000;

/// A run of a plan that was found.
#[derive(Debug)]
pub struct FoundRun {
    /// The journal that it is in.
    pub journal: Journal,
    /// The run.
    pub run: RunId,
    /// What its events add up to.
    pub record: RunRecord,
    /// Its views.
    pub views: ViewFolder,
}

/// What a person does to phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseChange {
    /// Sets them back to pending.
    Reset,
    /// Sets them back, to be tried again.
    Retry,
    /// Passes them over.
    Skip,
    /// Takes the work as it is in the user's tree: its gates are run, nobody works on it.
    Accept,
}

impl PhaseChange {
    /// The word that is recorded.
    pub fn name(self) -> &'static str {
        match self {
            PhaseChange::Reset => "reset",
            PhaseChange::Retry => "retry",
            PhaseChange::Skip => "skip",
            PhaseChange::Accept => "accept",
        }
    }
}

/// What became of phases that a person changed.
#[derive(Debug)]
pub struct Changed {
    /// The run.
    pub run: RunId,
    /// The phases, by their place in the plan.
    pub phases: Vec<usize>,
    /// The run as it is now.
    pub record: RunRecord,
    /// How many finished phases depend on what is done again, and are not done again themselves.
    pub dependents_kept: usize,
    /// The plan's file.
    pub file: PathBuf,
}

impl FoundRun {
    /// The run that is asked for: by its id, as the last of a plan, or as the last of the only
    /// plan.
    pub fn find(project: &Project, run: Option<RunId>, plan: Option<&Path>) -> Result<Self, RunError> {
        let journal = project.existing_journal()?.ok_or(RunError::NoPlanRuns)?;
        let run = match (run, plan) {
            (Some(run), _) => run,
            (None, Some(plan)) => {
                let file = plan.canonicalize().unwrap_or_else(|_| plan.to_owned());
                let path = path_in_project(&file, &project.root);
                last_run(journal, &path)?.ok_or(RunError::NoRunOf { plan: path })?
            }
            (None, None) => {
                let surface = Some("run".to_owned());
                let runs = journal.runs(&RunFilter { surface, limit: RUNS_MAX, ..RunFilter::default() })?;
                let mut plans: Vec<SafeText> = runs.iter().filter_map(|run| run.operation.clone()).collect();
                plans.sort();
                plans.dedup();
                if plans.len() > 1 {
                    return Err(RunError::WhichPlan { plans });
                }
                runs.first().map(|run| run.id).ok_or(RunError::NoPlanRuns)?
            }
        };
        let record = RunRecord::of(&journal.load(run)?);
        if record.is_empty() {
            return Err(RunError::NoRun { run });
        }
        let views = ViewFolder::new(&project.root, &view_name(record.path().raw()));
        Ok(Self { journal: journal.clone(), run, record, views })
    }

    /// A phase by its id, as it is written in the plan or in any other spelling.
    pub fn phase(&self, given: &str) -> Result<usize, RunError> {
        let unknown = || {
            let known = self.record.phases().map(|phase| phase.plan.shown.line(40)).collect();
            RunError::NoPhase { given: given.to_owned(), known }
        };
        let id: PhaseId = given.parse().map_err(|_| unknown())?;
        self.record.progress.number(id.key().as_str()).ok_or_else(unknown)
    }

    /// The commit that an attempt began from.
    pub fn base_of(&self, id: &str, attempt: u32) -> Option<Sha> {
        self.journal.load(self.run).ok()?.iter().find_map(|event| match &event.kind {
            EventKind::AttemptFinished { operation, attempt: n, delivery: Some(delivery), .. }
            | EventKind::AttemptLost { operation, attempt: n, delivery: Some(delivery), .. }
                if operation.raw() == id && *n == attempt =>
            {
                delivery.base.as_ref()?.parse().ok()
            }
            _ => None,
        })
    }

    /// Sets phases back, or passes them over: recorded first, then written into views and marks.
    pub fn change(
        &self,
        project: &Project,
        phases: &[String],
        change: PhaseChange,
        why: Option<&str>,
    ) -> Result<Changed, RunError> {
        let lock = lock_name(self.record.path().raw());
        let _hold = match project.hold(&lock)? {
            Held::Ours(hold) => hold,
            Held::By(holder) => {
                return Err(RunError::HeldBy { holder, plan: self.record.path().raw().to_owned() });
            }
        };
        let phases: Vec<usize> = phases.iter().map(|given| self.phase(given)).collect::<Result<_, _>>()?;
        let is_complete = |at: &&usize| self.record.phase(**at).node.status == NodeStatus::Complete;
        if change == PhaseChange::Skip
            && let Some(at) = phases.iter().find(is_complete)
        {
            return Err(RunError::PhaseComplete { phase: self.record.phase(*at).plan.shown.line(40) });
        }
        let person = person(project, why);
        let kinds = start_events::set_phases(&self.record, &phases, change.name(), &person);
        Recorder::resume(project, self.run, Opening::new("run"))?.append(kinds)?;
        let record = RunRecord::of(&self.journal.load(self.run)?);
        let written = self.views.make().map_err(ViewErrors::from);
        if let Err(error) = written.and_then(|()| self.views.write_phases(&record, &phases)) {
            project.process.warn(&format!("the state files cannot be written: {error}"), None);
        }
        let file = project.root.join(record.path().raw());
        if let Err(error) = mark(&file, &record, &phases) {
            project.process.warn(&format!("the plan's marks cannot be written: {error}"), None);
        }
        let dependents = |at: &usize| {
            let id = &record.phase(*at).plan.id;
            let waits = |phase: &PhaseProgress<'_>| {
                phase.node.status == NodeStatus::Complete && phase.plan.depends_on.contains(id)
            };
            record.phases().filter(waits).count()
        };
        let dependents_kept = if matches!(change, PhaseChange::Skip | PhaseChange::Accept) {
            0
        } else {
            phases.iter().map(dependents).sum()
        };
        Ok(Changed { run: self.run, phases, record, dependents_kept, file })
    }
}

impl Changed {
    /// The phases as reports show them.
    pub fn view(&self, change: PhaseChange) -> ChangedPhases {
        let phase = |at: &usize| {
            let phase = self.record.phase(*at);
            ChangedPhase {
                id: phase.plan.id.clone(),
                shown: phase.plan.shown.clone(),
                status: phase.node.status.name(),
                skipped: phase.node.skipped,
            }
        };
        ChangedPhases {
            run: self.run,
            phases: self.phases.iter().map(phase).collect(),
            what: match change {
                PhaseChange::Skip => "passed over",
                PhaseChange::Accept => "accepted; its gates are run",
                PhaseChange::Reset | PhaseChange::Retry => "pending again",
            },
            next: resume_command(&self.record),
            is_continued: change == PhaseChange::Accept,
            dependents_kept: self.dependents_kept,
        }
    }
}

/// A command that goes on with a run, as it is recorded: it works wherever it is typed below the
/// project. A plan that was named from another folder than the project's is named by its file.
pub(crate) fn typed_anywhere(resume: &str, file: &Path, project: &Project) -> String {
    let mut words = backstop_core::shell::words(resume).unwrap_or_default();
    // A folder is a plan too: that of the stories in it.
    let names_it =
        |plan: &String| project.root.join(plan).canonicalize().is_ok_and(|named| file.starts_with(named));
    match words.get_mut(2) {
        Some(plan) if !names_it(plan) => *plan = file.to_string_lossy().into_owned(),
        _ => return resume.to_owned(),
    }
    backstop_core::shell::line(&words)
}

/// The command that goes on with a run.
pub fn resume_command(record: &RunRecord) -> String {
    match record.plan.resume.as_str() {
        "" => format!("backstop run {}", record.path().line(400)),
        known => known.to_owned(),
    }
}
