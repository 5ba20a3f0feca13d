//! Where a plan is run: worktrees of a repository, or the folder itself. Looked at before anything is begun.

use super::asks;
use super::read::Found;
use crate::cli;
use crate::context::Context;
use crate::error::CliError;
use backstop_config as config;
use backstop_core::SafeText;
use backstop_plan::record::RunRecord;
use backstop_plan::start_events::{IN_PLACE, Mode};
use backstop_plan::workspace::{CommitMode, WorktreeSetup};
use backstop_runtime::host::NodeStatus;
use backstop_store::RunFilter;
use backstop_work::git::{Head, Repo, Sha, tip_ref};
use std::path::{Path, PathBuf};

/// How many paths of the user's are remembered.
const BEFORE_MAX: usize = 10_000;

/// Where a plan is run.
pub(super) enum Site {
    /// In worktrees.
    Worktrees(Box<WorktreeSetup>),
    /// In the folder itself.
    InPlace(Box<Place>),
}

/// The folder itself.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) repo: Option<Repo>,
    pub(super) commit: CommitMode,
    pub(super) exclude: Vec<PathBuf>,
    /// What differed from the last commit before the run began.
    pub(super) before: Vec<SafeText>,
}

impl Site {
    /// How the run is run, as it is recorded.
    pub(super) fn mode(&self, resume: &str, max_attempts: u32) -> Mode {
        let resume = resume.to_owned();
        match self {
            Site::Worktrees(ground) => Mode {
                commit: ground.commit.name().to_owned(),
                isolation: "worktree".to_owned(),
                base: Some(ground.base.to_string()),
                branch: ground.branch.clone(),
                resume,
                max_attempts,
                before: Vec::new(),
            },
            Site::InPlace(place) => Mode {
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

/// Looks at the ground. `before` is what was recorded of the run that is gone on with. The folder of the slots is named
/// when the run has an id.
pub(super) fn look(
    args: &cli::Run,
    context: &Context,
    settings: &config::PlanSettings,
    found: &Found,
    before: Option<&RunRecord>,
) -> Result<Site, CliError> {
    let repo = Repo::find(&context.project).map_err(CliError::git)?;
    let commit = commit(args, settings, repo.is_some(), before)?;
    let exclude = vec![found.file.clone(), PathBuf::from(backstop_plan::view::FOLDER)];
    let isolated = settings.isolation != "none" && repo.is_some();
    if let Some(began) = before.map(|record| record.plan.isolation.as_str())
        && (began == "none") == isolated
    {
        return Err(CliError::OtherIsolation { began: if isolated { "none" } else { "auto" } });
    }
    let Some(repo) = repo else {
        let folder = context.project.clone();
        return Ok(Site::InPlace(Box::new(Place {
            folder,
            repo: None,
            commit,
            exclude,
            before: Vec::new(),
        })));
    };
    let head = repo.head().map_err(CliError::git)?;
    if let Some(underway) = head.underway {
        return Err(CliError::Underway { what: underway.command() });
    }
    if !args.allow_dirty && !args.dry_run && (isolated || commit != CommitMode::None) {
        // The plans that were run here carry marks of ours, which are in no commit of ours.
        let plans = plans_here(context);
        let exempt: Vec<&Path> = plans.iter().chain([&found.file]).map(PathBuf::as_path).collect();
        let files = repo.dirty(&exempt).map_err(CliError::git)?;
        // Phases that ran in the folder itself have changed it, and so has work that was put there at the end: that is what
        // is gone on with.
        let finished =
            before.is_some_and(|record| record.count(NodeStatus::Complete) == found.plan.phases.len());
        if !files.is_empty() && (isolated || before.is_none()) && !finished {
            return Err(CliError::Dirty { files });
        }
    }
    if !isolated {
        let folder = repo.root().to_owned();
        let known = match before {
            Some(record) => record.plan.before.clone(),
            None => {
                let except: Vec<&Path> = exclude.iter().map(PathBuf::as_path).collect();
                let paths = repo.changed_now(&except).map_err(CliError::git)?;
                paths.iter().take(BEFORE_MAX).map(|path| SafeText::new(path.to_string_lossy())).collect()
            }
        };
        return Ok(Site::InPlace(Box::new(Place {
            folder,
            repo: Some(repo),
            commit,
            exclude,
            before: known,
        })));
    }
    let Head { sha: Some(base), branch, .. } = head else { return Err(CliError::NoCommit) };
    // While work is handed in and not integrated, what the user committed since cannot be met yet: then the tree is taken as
    // it was, and they meet at the next start. A tip that does not hold it must not be put in its place.
    let base = match before.filter(|record| record.all_phases().any(|phase| phase.node.is_delivered())) {
        Some(record) if !is_ours(&repo, record, &base)? => {
            record.plan.base.as_ref().and_then(|base| base.parse().ok()).unwrap_or(base)
        }
        _ => base,
    };
    Ok(Site::Worktrees(Box::new(WorktreeSetup {
        repo,
        folder: PathBuf::new(),
        commit,
        branch,
        base,
        exclude,
        link: settings.link.clone(),
        copy: settings.copy.clone(),
    })))
}

/// Whether a run's tip holds what is checked out: then nobody but the run has committed.
fn is_ours(repo: &Repo, record: &RunRecord, head: &Sha) -> Result<bool, CliError> {
    let now = match record.progress.run {
        Some(run) => repo.read_ref(&tip_ref(run)).map_err(CliError::git)?,
        None => None,
    };
    let tip = now.or_else(|| record.progress.tip.as_ref().and_then(|tip| tip.parse().ok()));
    tip.map_or(Ok(false), |tip| repo.contains(&tip, head).map_err(CliError::git))
}

/// The files of the plans that were run in this project.
fn plans_here(context: &Context) -> Vec<PathBuf> {
    let Ok(Some(journal)) = context.existing_journal() else { return Vec::new() };
    let filter = RunFilter { surface: Some("run".to_owned()), limit: 1000, ..RunFilter::default() };
    let runs = journal.runs(&filter).unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        runs.iter().filter_map(|run| Some(context.project.join(run.operation.as_ref()?.raw()))).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// How finished phases are committed: as was typed, else as the run began, else as somebody says.
fn commit(
    args: &cli::Run,
    settings: &config::PlanSettings,
    is_git: bool,
    before: Option<&RunRecord>,
) -> Result<CommitMode, CliError> {
    let recorded = before.and_then(|record| CommitMode::from_name(&record.plan.commit));
    let given = settings.commit.as_deref().and_then(CommitMode::from_name);
    if let (Some(recorded), Some(given)) = (recorded, given)
        && recorded != given
    {
        return Err(CliError::OtherCommit { began: recorded.name(), given: given.name() });
    }
    if let Some(commit) = recorded.or(given) {
        return if is_git || commit == CommitMode::None || recorded.is_some() {
            Ok(commit)
        } else {
            Err(CliError::NoGitForCommit { given: commit.name() })
        };
    }
    if !is_git || args.dry_run {
        return Ok(CommitMode::None);
    }
    if !asks::can_ask() {
        return Err(CliError::NoCommitMode);
    }
    let question = "How are finished phases committed?\n  auto          one commit a phase, on your branch\n  \
                    single        one commit at the end\n  message-only  no commits; commits.sh has one command a phase\n  \
                    none          no commits\nType one of these: ";
    for _ in 0..3 {
        let answer = asks::ask(question).unwrap_or_default();
        if let Some(commit) = CommitMode::from_name(&answer) {
            return Ok(commit);
        }
        if answer.is_empty() {
            break;
        }
        crate::terminal::say("type one of the four words\n");
    }
    Err(CliError::NoCommitMode)
}

/// Brings the run's tip and what the user has committed since together. Gives the new tip, where it moves.
pub(super) fn meet(ground: &WorktreeSetup, tip: &Sha) -> Result<Option<Sha>, CliError> {
    let (repo, head) = (&ground.repo, &ground.base);
    if repo.contains(tip, head).map_err(CliError::git)? {
        return Ok(None);
    }
    if repo.contains(head, tip).map_err(CliError::git)? {
        return Ok(Some(head.clone()));
    }
    match repo.merge(head, tip).map_err(CliError::git)? {
        backstop_work::git::Merged::Clean(tree) => {
            let message = "Merge what was committed meanwhile";
            Ok(Some(repo.commit_tree(&tree, &[head, tip], message).map_err(CliError::git)?))
        }
        backstop_work::git::Merged::Conflicted(conflicts) => {
            let files = conflicts.iter().map(|conflict| PathBuf::from(&conflict.path)).collect();
            Err(CliError::Diverged { tip: tip.to_string(), files })
        }
    }
}
