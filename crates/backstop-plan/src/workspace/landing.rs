//! Brings finished work to the user: on the branch, as one commit, or as changed files.

use super::commit_mode::CommitMode;
use super::phase_runner::PhaseRunner;
use crate::record::RunRecord;
use backstop_core::{BaseGate, EventKind, RunId, SafeText, WorkAt};
use backstop_runtime::host::{Concluded, Note, Reporter};
use backstop_work::git::{
    Applied, CommitTrouble, GitError, How, Landing, Repo, ScriptEntry, Sha, commits_script, tip_ref,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Whether the user's branch was moved to the finished work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Landed {
    /// It was.
    There,
    /// It was not, and why; the work is kept on a ref.
    Kept(String),
}

impl Landed {
    pub(super) fn of(landing: Landing, branch: Option<&str>) -> Self {
        let branch = branch_name(branch);
        match landing {
            Landing::Done | Landing::AlreadyThere => Landed::There,
            Landing::Moved { .. } => Landed::Kept(format!("{branch} has moved meanwhile")),
            Landing::OtherBranch { now: Some(now) } => {
                Landed::Kept(format!("{} is checked out now", branch_name(Some(&now))))
            }
            Landing::OtherBranch { now: None } => {
                Landed::Kept(format!("{branch} is not checked out any more"))
            }
            Landing::Refused { why, files } => {
                let files: Vec<String> = files.iter().take(3).map(|f| f.display().to_string()).collect();
                let files = if files.is_empty() { why.line(200) } else { files.join(", ") };
                Landed::Kept(format!("changes of yours are in the way: {files}"))
            }
        }
    }

    /// The note for people, where the work is kept.
    pub(super) fn note(&self, reference: &str) -> String {
        match self {
            Landed::There => String::new(),
            Landed::Kept(why) => format!("the work is kept on {reference}: {why}"),
        }
    }
}

/// A branch name without `refs/heads/`.
pub(super) fn branch_name(branch: Option<&str>) -> String {
    let name = branch.map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    name.unwrap_or("the commit without a branch").to_owned()
}

/// Where the work is once a run is complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// On a branch, uncommitted, or kept on a ref; nothing outside git.
    pub work: Option<WorkAt>,
    /// How many files were changed in all.
    pub files_changed: Option<u64>,
    /// The squashed commit of `--commit single`: hash and first line.
    pub commit: Option<(String, SafeText)>,
    /// What the gates say of the user's own commits, those that were merged at the end included.
    pub base_gates: Vec<BaseGate>,
}

impl Conclusion {
    /// The conclusion outside git: there is nothing left to do.
    pub fn nothing() -> Self {
        Self { work: None, files_changed: None, commit: None, base_gates: Vec::new() }
    }

    /// This conclusion with what is known of the user's own commits.
    pub(super) fn beside(self, runner: &PhaseRunner<'_>) -> Self {
        Self { base_gates: runner.baselines().now().gates().to_vec(), ..self }
    }

    /// This conclusion with the events that record its commit and what is newly known of the base.
    pub(super) fn recorded(self, record: &RunRecord) -> Concluded<Self> {
        let new = self.commit.clone().filter(|made| record.one_commit.as_ref() != Some(made));
        let made = new.map(|(sha, subject)| EventKind::CommitMade {
            operation: record.path().clone(),
            sha,
            subject: Some(subject),
        });
        let is_new = !self.base_gates.is_empty() && self.base_gates != record.base_gates;
        let base = is_new.then(|| EventKind::BaseChecked { tree: None, gates: self.base_gates.clone() });
        Concluded { events: base.into_iter().chain(made).collect(), conclusion: self }
    }
}

/// Why the work could not be brought to the user.
pub(super) enum ConcludeError {
    Git(GitError),
    Commit(CommitTrouble),
}

impl From<GitError> for ConcludeError {
    fn from(error: GitError) -> Self {
        ConcludeError::Git(error)
    }
}

/// What [`conclude`] needs to know of a run in worktrees.
pub(super) struct ConcludeParts<'l> {
    pub(super) repo: &'l Repo,
    pub(super) run: RunId,
    pub(super) commit: CommitMode,
    pub(super) branch: Option<&'l str>,
    pub(super) base: &'l Sha,
    pub(super) tip: &'l Sha,
    pub(super) landed: &'l Sha,
    pub(super) exclude: &'l [PathBuf],
    pub(super) reporter: &'l Reporter,
}

/// Commits a tree onto a parent with this message, with hooks and signing.
pub(super) type MakeCommit<'m> =
    dyn FnMut(&Sha, &Sha, &str) -> Result<Result<Sha, CommitTrouble>, GitError> + 'm;

/// Brings the work to the user as the commit mode says. It can be called again after a crash.
pub(super) fn conclude(
    runner: &PhaseRunner<'_>,
    parts: &ConcludeParts<'_>,
    record: &RunRecord,
    make: &mut MakeCommit<'_>,
) -> Result<Conclusion, ConcludeError> {
    let ConcludeParts { repo, base, tip, .. } = parts;
    let first: Sha =
        record.first_base.as_ref().and_then(|base| base.parse().ok()).unwrap_or_else(|| (*base).clone());
    let files_changed = Some(repo.changed_paths(&first, tip)?.len() as u64);
    let reference = tip_ref(parts.run);
    let mut commit = None;
    let work = match parts.commit {
        _ if repo.tree_of(base)? == repo.tree_of(tip)? && parts.commit != CommitMode::Auto => {
            if parts.commit == CommitMode::Single {
                commit = earlier_commit(runner, parts, record)?;
            }
            match commit.is_some() || repo.tree_of(&first)? != repo.tree_of(tip)? {
                // It was committed before: by an earlier start, or by the user.
                true => WorkAt::Landed {
                    branch: SafeText::new(branch_name(parts.branch)),
                    sha: SafeText::new(base.short()),
                },
                false => WorkAt::Uncommitted { command: None },
            }
        }
        CommitMode::Auto => landed_at(parts, parts.landed, tip, &reference)?,
        CommitMode::Single => {
            let name = single_ref(parts.run);
            let message = single_message(runner, record);
            let subject = SafeText::new(message.lines().next().unwrap_or_default());
            let sha = match repo.read_ref(&name)? {
                Some(made) if repo.tree_of(&made)? == repo.tree_of(tip)? => made,
                before => {
                    let made = make(&repo.tree_of(tip)?, base, &message)?.map_err(ConcludeError::Commit)?;
                    repo.set_ref(&name, &made, before.as_ref())?;
                    made
                }
            };
            commit = Some((sha.to_string(), subject));
            landed_at(parts, base, &sha, &name)?
        }
        CommitMode::MessageOnly | CommitMode::None => {
            let except: Vec<&Path> = parts.exclude.iter().map(PathBuf::as_path).collect();
            match repo.apply_tree(base, tip, &except)? {
                Applied::Done { .. } => {
                    WorkAt::Uncommitted { command: commits_of_phases(runner, parts, record)? }
                }
                Applied::Refused { files } => {
                    let names: Vec<String> = files.iter().take(3).map(|f| f.display().to_string()).collect();
                    kept_at(&reference, &format!("changes of yours are in the way: {}", names.join(", ")))
                }
            }
        }
    };
    Ok(Conclusion { work: Some(masked(runner, work)), files_changed, commit, ..Conclusion::nothing() })
}

/// The ref that holds the squashed commit of a run.
fn single_ref(run: RunId) -> String {
    format!("refs/backstop/{run}/%single")
}

/// The squashed commit that an earlier start of this run put on the user's branch.
fn earlier_commit(
    runner: &PhaseRunner<'_>,
    parts: &ConcludeParts<'_>,
    record: &RunRecord,
) -> Result<Option<(String, SafeText)>, GitError> {
    let is_there = |sha: &Sha| parts.repo.contains(parts.base, sha).unwrap_or(false);
    if let Some(known) = &record.one_commit {
        return Ok(known.0.parse().is_ok_and(|sha| is_there(&sha)).then(|| known.clone()));
    }
    // It was made, and the process ended before that was recorded.
    let made = parts.repo.read_ref(&single_ref(parts.run))?.filter(is_there);
    Ok(made.map(|sha| {
        let message = single_message(runner, record);
        (sha.to_string(), SafeText::new(message.lines().next().unwrap_or_default()))
    }))
}

/// The branch is the user's own name, and what git says may hold others.
fn masked(runner: &PhaseRunner<'_>, work: WorkAt) -> WorkAt {
    let mask = |text: &SafeText| SafeText::new(runner.redactor.redact(text.raw()).into_owned());
    match work {
        WorkAt::Landed { branch, sha } => WorkAt::Landed { branch: mask(&branch), sha },
        WorkAt::Kept { reference, why, command } => WorkAt::Kept { reference, why: mask(&why), command },
        uncommitted @ WorkAt::Uncommitted { .. } => uncommitted,
    }
}

fn landed_at(parts: &ConcludeParts<'_>, from: &Sha, to: &Sha, reference: &str) -> Result<WorkAt, GitError> {
    let landing = match parts.repo.land_ff(parts.branch, from, to) {
        // Nothing is in the way: the same lands once there is room.
        Err(error @ (GitError::NoRoom { .. } | GitError::ReadOnly { .. })) => return Err(error),
        landing => landing,
    };
    let landed = landing
        .map_or_else(|error| Landed::Kept(error.to_string()), |landing| Landed::of(landing, parts.branch));
    Ok(match landed {
        Landed::There => WorkAt::Landed {
            branch: SafeText::new(branch_name(parts.branch)),
            sha: SafeText::new(to.short()),
        },
        Landed::Kept(why) => kept_at(reference, &why),
    })
}

fn kept_at(reference: &str, why: &str) -> WorkAt {
    WorkAt::Kept {
        reference: SafeText::new(reference),
        why: SafeText::new(why),
        command: SafeText::new(format!("git merge {reference}")),
    }
}

/// The message of the squashed commit: all phases, a line each.
pub(super) fn single_message(runner: &PhaseRunner<'_>, record: &RunRecord) -> String {
    let line = |at: usize| {
        let delivery = record.phase(at).node.delivery.clone().unwrap_or_default();
        let message = runner.commit_message(at, &delivery);
        format!("- {}: {}", runner.phase(at).id.shown(), message.lines().next().unwrap_or_default())
    };
    let is_done = |at: &usize| !record.phase(*at).node.skipped && record.phase(*at).node.total > 0;
    let done = (0..record.len()).filter(is_done);
    let lines: Vec<String> = done.map(line).collect();
    let name = Path::new(record.path().raw()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let phases = if lines.len() == 1 { "1 phase".to_owned() } else { format!("{} phases", lines.len()) };
    format!("Complete {name}: {phases}\n\n{}\n", lines.join("\n"))
}

/// Writes `commits.sh` for `--commit message-only`, and returns the command that runs it.
fn commits_of_phases(
    runner: &PhaseRunner<'_>,
    parts: &ConcludeParts<'_>,
    record: &RunRecord,
) -> Result<Option<SafeText>, GitError> {
    if parts.commit != CommitMode::MessageOnly {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let first = record.first_base.as_ref().and_then(|base| base.parse().ok());
    let mut before: Sha = first.unwrap_or_else(|| parts.base.clone());
    // The tips in the order in which they were recorded: each is one phase's work, or a commit of
    // the user's.
    for (at, tip) in integrated_tips(runner, record) {
        let Some(at) = at else {
            before = tip;
            continue;
        };
        let delivery = record.phase(at).node.delivery.clone().unwrap_or_default();
        let mut entry =
            ScriptEntry { message: runner.commit_message(at, &delivery), ..ScriptEntry::default() };
        for changed in parts.repo.changed_paths(&before, &tip)? {
            match changed.how {
                How::Deleted => entry.deleted.push(changed.path),
                How::Added | How::Modified => entry.paths.push(changed.path),
            }
        }
        before = tip;
        entries.push(entry);
    }
    Ok(write_script(runner, parts.reporter, entries))
}

/// Writes `commits.sh` without the names of files that look like secrets.
pub(super) fn write_script(
    runner: &PhaseRunner<'_>,
    reporter: &Reporter,
    mut entries: Vec<ScriptEntry>,
) -> Option<SafeText> {
    let can_be_named = |path: &OsString| {
        let name = path.to_string_lossy();
        runner.redactor.redact(&name) == name
    };
    for entry in &mut entries {
        let all = entry.paths.len() + entry.deleted.len();
        entry.paths.retain(can_be_named);
        entry.deleted.retain(can_be_named);
        entry.unnamed = all - entry.paths.len() - entry.deleted.len();
    }
    if let Err(error) = runner.views.write_commits(&commits_script(&entries)) {
        // Nobody is told to run a script that is not ours.
        reporter.note(Note::Message(SafeText::new(format!("commits.sh is not written: {error}"))));
        return None;
    }
    Some(SafeText::new(format!("sh {}", runner.views.commits_script().display())))
}

fn integrated_tips(runner: &PhaseRunner<'_>, record: &RunRecord) -> Vec<(Option<usize>, Sha)> {
    let events = runner.recorder.events();
    let tips = events.iter().filter_map(|event| match &event.kind {
        EventKind::IntegrationFinished { operation, tip } => {
            let at = record.progress.number(operation.raw());
            Some((at, tip.parse().ok()?))
        }
        _ => None,
    });
    tips.collect()
}
