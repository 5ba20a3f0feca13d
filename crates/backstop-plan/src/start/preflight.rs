//! Where a plan is run: worktrees of a repository, or the folder itself. Looked at before anything
//! is begun.

use super::{PlanFile, Prompts, RunError, RunRequest};
use crate::record::RunRecord;
use crate::start_events::{IN_PLACE, Mode};
use crate::workspace::{CommitMode, WorktreeSetup};
use backstop_config::PlanSettings;
use backstop_core::SafeText;
use backstop_runtime::Project;
use backstop_runtime::host::NodeStatus;
use backstop_store::RunFilter;
use backstop_work::git::{Head, Repo, Sha, tip_ref};
use std::path::{Path, PathBuf};

/// How many paths of the user's are remembered.
const BEFORE_MAX: usize = 10_000;

/// Where a plan is run.
pub enum Workspace {
    /// In worktrees.
    Worktrees(Box<WorktreeSetup>),
    /// In the folder itself.
    InPlace(Box<InPlaceSetup>),
}

/// The folder itself.
pub struct InPlaceSetup {
    /// The folder.
    pub folder: PathBuf,
    /// The repository that it is in, if it is in one.
    pub repo: Option<Repo>,
    /// How finished phases are committed.
    pub commit: CommitMode,
    /// Paths that belong to no phase.
    pub exclude: Vec<PathBuf>,
    /// What differed from the last commit before the run began.
    pub before: Vec<SafeText>,
}

impl Workspace {
    /// The repository that phases run in, if they do.
    pub(crate) fn repo(&self) -> Option<&Repo> {
        match self {
            Workspace::Worktrees(setup) => Some(&setup.repo),
            Workspace::InPlace(place) => place.repo.as_ref(),
        }
    }

    /// How the run is run, as it is recorded.
    pub fn mode(&self, resume: &str, max_attempts: u32) -> Mode {
        let resume = resume.to_owned();
        match self {
            Workspace::Worktrees(ground) => Mode {
                commit: ground.commit.name().to_owned(),
                isolation: "worktree".to_owned(),
                base: Some(ground.base.to_string()),
                branch: ground.branch.clone(),
                resume,
                max_attempts,
                before: Vec::new(),
            },
            Workspace::InPlace(place) => Mode {
                commit: place.commit.name().to_owned(),
                isolation: IN_PLACE.to_owned(),
                base: place.repo.as_ref().and_then(|repo| repo.head().ok()?.sha).map(|sha| sha.to_string()),
                branch: None,
                resume,
                max_attempts,
                before: place.before.clone(),
            },
        }
    }
}

/// Looks at where the plan is to be run, and refuses what stands in its way. `before` is what was
/// recorded of the run that is gone on with. The folder of the slots is named when the run has an
/// id.
pub fn preflight(
    request: &RunRequest,
    project: &Project,
    prompts: &dyn Prompts,
    settings: &PlanSettings,
    found: &PlanFile,
    before: Option<&RunRecord>,
) -> Result<Workspace, RunError> {
    let repo = Repo::find(&project.root)?;
    let commit = commit(request, prompts, settings, repo.is_some(), before)?;
    let mut exclude = found.files();
    exclude.push(PathBuf::from(crate::view::FOLDER));
    let isolated = settings.isolation != "none" && repo.is_some();
    if let Some(began) = before.map(|record| record.plan.isolation.as_str())
        && (began == "none") == isolated
    {
        return Err(RunError::OtherIsolation { began: if isolated { "none" } else { "auto" } });
    }
    let Some(repo) = repo else {
        let folder = project.root.clone();
        return Ok(Workspace::InPlace(Box::new(InPlaceSetup {
            folder,
            repo: None,
            commit,
            exclude,
            before: Vec::new(),
        })));
    };
    if let Some(record) = before {
        is_the_same_repository(&repo, record, found)?;
    }
    let head = repo.head()?;
    if let Some(underway) = head.underway {
        return Err(RunError::Underway { what: underway.command() });
    }
    if !request.allow_dirty && !request.dry_run && (isolated || commit != CommitMode::None) {
        // The plans that were run here carry marks of ours, which are in no commit of ours.
        let plans = plans_here(project);
        let own = found.files();
        let exempt: Vec<&Path> = plans.iter().chain(&own).map(PathBuf::as_path).collect();
        let files = repo.dirty(&exempt)?;
        // Phases that ran in the folder itself have changed it, and so has work that was put there
        // at the end: that is what is gone on with.
        let finished =
            before.is_some_and(|record| record.count(NodeStatus::Complete) == found.plan.phases.len());
        if !files.is_empty() && (isolated || before.is_none()) && !finished {
            return Err(RunError::Dirty { files });
        }
    }
    if !isolated {
        let folder = repo.root().to_owned();
        let known = match before {
            Some(record) => record.plan.before.clone(),
            None => {
                let except: Vec<&Path> = exclude.iter().map(PathBuf::as_path).collect();
                let paths = repo.changed_now(&except)?;
                paths.iter().take(BEFORE_MAX).map(|path| SafeText::new(path.to_string_lossy())).collect()
            }
        };
        return Ok(Workspace::InPlace(Box::new(InPlaceSetup {
            folder,
            repo: Some(repo),
            commit,
            exclude,
            before: known,
        })));
    }
    let Head { sha: Some(base), branch, .. } = head else { return Err(RunError::NoCommit) };
    // While work is handed in and not integrated, what the user committed since cannot be met yet:
    // then the tree is taken as it was, and they meet at the next start. A tip that does not hold
    // it must not be put in its place.
    let base = match before.filter(|record| record.all_phases().any(|phase| phase.node.is_delivered())) {
        Some(record) if !is_ours(&repo, record, &base)? => {
            record.plan.base.as_ref().and_then(|base| base.parse().ok()).unwrap_or(base)
        }
        _ => base,
    };
    Ok(Workspace::Worktrees(Box::new(WorktreeSetup {
        repo,
        folder: PathBuf::new(),
        commit,
        branch,
        exclude,
        link: settings.link.clone(),
        copy: settings.copy.clone(),
        first_base: before
            .and_then(|record| record.first_base.as_ref()?.parse().ok())
            .unwrap_or_else(|| base.clone()),
        meet: None,
        base,
    })))
}

/// A repository that was made anew, or cloned again, lacks what the run recorded.
fn is_the_same_repository(repo: &Repo, record: &RunRecord, found: &PlanFile) -> Result<(), RunError> {
    let recorded = [&record.progress.tip, &record.plan.base, &record.first_base];
    for commit in recorded.into_iter().flatten() {
        let is_there = commit.parse::<Sha>().is_ok_and(|sha| repo.tree_of(&sha).is_ok());
        if !is_there {
            let commit = commit.chars().take(10).collect();
            return Err(RunError::OtherRepository { plan: found.path.clone(), commit });
        }
    }
    Ok(())
}

/// Whether a run's tip holds what is checked out: then nobody but the run has committed.
fn is_ours(repo: &Repo, record: &RunRecord, head: &Sha) -> Result<bool, RunError> {
    let now = match record.progress.run {
        Some(run) => repo.read_ref(&tip_ref(run))?,
        None => None,
    };
    let tip = now.or_else(|| record.progress.tip.as_ref().and_then(|tip| tip.parse().ok()));
    Ok(tip.map_or(Ok(false), |tip| repo.contains(&tip, head))?)
}

/// The files of the plans that were run in this project.
fn plans_here(project: &Project) -> Vec<PathBuf> {
    let Ok(Some(journal)) = project.existing_journal() else { return Vec::new() };
    let filter = RunFilter { surface: Some("run".to_owned()), limit: 1000, ..RunFilter::default() };
    let runs = journal.runs(&filter).unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        runs.iter().filter_map(|run| Some(project.root.join(run.operation.as_ref()?.raw()))).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// How finished phases are committed: as was typed, else as the run began, else as somebody says.
fn commit(
    request: &RunRequest,
    prompts: &dyn Prompts,
    settings: &PlanSettings,
    is_git: bool,
    before: Option<&RunRecord>,
) -> Result<CommitMode, RunError> {
    let recorded = before.and_then(|record| CommitMode::from_name(&record.plan.commit));
    let given = settings.commit.as_deref().and_then(CommitMode::from_name);
    if let (Some(recorded), Some(given)) = (recorded, given)
        && recorded != given
    {
        return Err(RunError::OtherCommit { began: recorded.name(), given: given.name() });
    }
    if let Some(commit) = recorded.or(given) {
        return if is_git || commit == CommitMode::None || recorded.is_some() {
            Ok(commit)
        } else {
            Err(RunError::NoGitForCommit { given: commit.name() })
        };
    }
    if !is_git || request.dry_run {
        return Ok(CommitMode::None);
    }
    prompts.commit_mode().ok_or(RunError::NoCommitMode)
}
