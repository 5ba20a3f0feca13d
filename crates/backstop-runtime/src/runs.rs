//! Finding runs: the newest, one by its id in this project or another, those of all projects.

use crate::project::{Project, ProjectError};
use backstop_core::nearest::nearest;
use backstop_core::{
    ErrorKind, Event, EventKind, HintedError, IdError, Outcome, RunId, RunSummary, SafeText, Timestamp,
};
use backstop_store::{Journal, RunFilter, StateFolder, StoreError};
use std::path::PathBuf;
use std::sync::Arc;

/// Among how many runs the nearest id is looked for.
const NEAREST_AMONG_MAX: u32 = 1000;
/// Among how many entries the newest run is looked for.
const NEWEST_AMONG_MAX: u32 = 200;
/// Among how many runs those that did not end well are looked for.
const FAILED_AMONG_MAX: u32 = 10_000;
/// Surfaces on which only an override was noted: nothing was run.
const OVERRIDES: [&str; 3] = ["guard", "budget", "unfreeze"];

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// No such run is recorded.
    #[error("no run {run} is recorded; it may have been removed because of its age")]
    Unknown {
        /// The run.
        run: RunId,
        /// The nearest id in this project.
        near: Option<String>,
    },
    /// Nothing is recorded in this project.
    #[error("nothing has been run in this project yet")]
    NoRuns,
    /// Nothing that is recorded has failed.
    #[error("nothing has failed in this project yet")]
    NothingFailed,
    /// What was given is no id.
    #[error("{0}")]
    Id(#[from] IdError),
    /// The project cannot be used.
    #[error("{0}")]
    Project(#[from] ProjectError),
}

impl From<StoreError> for RunsError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl HintedError for RunsError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::NoRuns => ErrorKind::Usage,
            Self::NothingFailed => ErrorKind::Failed,
            Self::Id(error) => error.kind(),
            Self::Project(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { near: Some(near), .. } => {
                vec![format!("did you mean {near}? `backstop runs` lists the runs of this project")]
            }
            Self::Unknown { near: None, .. } => {
                vec!["`backstop runs` lists the runs of this project".to_owned()]
            }
            Self::NoRuns => {
                vec!["`backstop exec -- COMMAND` runs a command, `backstop run PLAN.md` a plan".to_owned()]
            }
            Self::NothingFailed => vec!["`backstop runs` lists what was done".to_owned()],
            Self::Id(error) => HintedError::hints(error),
            Self::Project(error) => error.hints(),
        }
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Project(error) if error.is_multiline())
    }
}

/// Which runs are listed.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Only runs that began after this time.
    pub since: Option<Timestamp>,
    /// Only runs that did not end well.
    pub failed: bool,
    /// How many at most. One more is given where there are more.
    pub limit: u32,
}

impl Wanted {
    fn filter(&self) -> RunFilter {
        let limit = if self.failed { FAILED_AMONG_MAX } else { self.limit.saturating_add(1) };
        RunFilter { limit, since: self.since, ..RunFilter::default() }
    }

    fn takes(&self, run: &RunSummary) -> bool {
        !self.failed || !matches!(run.outcome, Some(Outcome::Done | Outcome::Interrupted) | None)
    }
}

/// The runs of this project, newest first.
pub fn of_project(project: &Project, wanted: &Wanted) -> Result<Vec<RunSummary>, ProjectError> {
    let Some(journal) = project.existing_journal()? else { return Ok(Vec::new()) };
    Ok(journal.runs(&wanted.filter())?.into_iter().filter(|run| wanted.takes(run)).collect())
}

/// Runs, each with its project, and the projects that cannot be read.
pub type RunsOfProjects = (Vec<(SafeText, RunSummary)>, Vec<StoreError>);

/// The runs of every project of the state folder, newest first, each with its project. Projects
/// that cannot be read are left out, and given beside them.
pub fn of_all_projects(project: &Project, wanted: &Wanted) -> Result<RunsOfProjects, ProjectError> {
    let (journals, mut unreadable) = project.folder()?.journals()?;
    let mut runs: Vec<(SafeText, RunSummary)> = Vec::new();
    for journal in journals {
        let found = journal.project_path().and_then(|path| Ok((path, journal.runs(&wanted.filter())?)));
        match found {
            Ok((path, found)) => {
                let path = SafeText::new(path.unwrap_or_default().to_string_lossy());
                let found = found.into_iter().filter(|run| wanted.takes(run));
                runs.extend(found.map(|run| (path.clone(), run)));
            }
            Err(error) => unreadable.push(error),
        }
    }
    runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.started_at));
    Ok((runs, unreadable))
}

/// The newest run of this project in which something was run.
pub fn newest(project: &Project) -> Result<Option<RunId>, ProjectError> {
    let Some(journal) = project.existing_journal()? else { return Ok(None) };
    let filter = RunFilter { limit: NEWEST_AMONG_MAX, ..RunFilter::default() };
    let ran = |run: &RunSummary| !OVERRIDES.contains(&run.surface.as_str());
    Ok(journal.runs(&filter)?.into_iter().find(ran).map(|run| run.id))
}

/// The journal that a run is in: this project's, or that of another one, because an id is what
/// people copy from a terminal. `elsewhere` are more state folders to look in, if it is in none of
/// them.
pub fn journal_of(
    project: &Project,
    run: RunId,
    elsewhere: impl FnOnce() -> Vec<PathBuf>,
) -> Result<Journal, RunsError> {
    match project.existing_journal()? {
        Some(journal) if journal.run(run)?.is_some() => return Ok(journal.clone()),
        _ => {}
    }
    if let Some(journal) = project.folder()?.find_run(run)? {
        return Ok(journal);
    }
    let found = elsewhere().iter().find_map(|state| {
        let clock = Arc::new(project.process.now);
        let folder = StateFolder::open(state, clock, Arc::clone(&project.redactor)).ok()?;
        folder.find_run(run).ok()?
    });
    found.ok_or_else(|| unknown(project, run))
}

/// The newest run of this project in which something failed, and what was recorded of it.
pub fn newest_failed(project: &Project) -> Result<(RunId, Vec<Event>), RunsError> {
    let journal = project.existing_journal()?.ok_or(RunsError::NoRuns)?;
    let classified = |event: &Event| matches!(event.kind, EventKind::ErrorClassified { .. });
    for run in journal.runs(&RunFilter { limit: NEAREST_AMONG_MAX, ..RunFilter::default() })? {
        let events = journal.load(run.id)?;
        if events.iter().any(classified) {
            return Ok((run.id, events));
        }
    }
    Err(RunsError::NothingFailed)
}

/// No such run is recorded; the nearest one of this project, where one is near.
pub fn unknown(project: &Project, run: RunId) -> RunsError {
    let filter = RunFilter { limit: NEAREST_AMONG_MAX, ..RunFilter::default() };
    let journal = project.existing_journal().ok().flatten();
    let runs = journal.and_then(|journal| journal.runs(&filter).ok()).unwrap_or_default();
    let ids: Vec<String> = runs.iter().map(|run| run.id.to_string()).collect();
    let near = nearest(&run.to_string(), ids.iter().map(String::as_str)).map(str::to_owned);
    RunsError::Unknown { run, near }
}
