//! Runs phases in the project's folder itself, one at a time: outside git, or with `--isolation
//! none`.

use super::attempt_log::now;
use super::commit_mode::CommitMode;
use super::faults::{commit_fault, git_fault};
use super::landing::{Conclusion, single_message, write_script};
use super::phase_runner::{AttemptDir, PhaseRunner};
use super::weakened::WorkChange;
use crate::record::RunRecord;
use backstop_core::{EventKind, Fault, Reason, SafeText, Sha256, WorkAt};
use backstop_exec::Stop;
use backstop_files::{FileError, named};
use backstop_runtime::host::{
    AttemptJob, AttemptResult, Concluded, Executor, IntegrationJob, IntegrationResult, Note, Reporter,
};
use backstop_work::git::{CommitTrouble, GitError, Repo, ScriptEntry, Sha};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The largest file whose content is compared, in bytes. Larger ones are compared by size and time.
const COMPARED_BYTES_MAX: u64 = 64 << 20;

/// Runs phases in the project's folder itself.
pub struct InPlace<'p> {
    /// Makes the attempts.
    pub runner: &'p PhaseRunner<'p>,
    /// The project's folder.
    pub folder: PathBuf,
    /// The repository that contains the folder, if there is one.
    pub repo: Option<Repo>,
    /// How finished phases are committed.
    pub commit: CommitMode,
    /// Paths that are never a phase's work: the plan's file, the views.
    pub exclude: Vec<PathBuf>,
    /// Paths that differed from the last commit before the run started. They are the user's.
    pub before: Vec<SafeText>,
    /// What the attempts of each phase have changed since this start.
    pub touched: Mutex<BTreeMap<usize, Touched>>,
}

/// What the attempts of a phase have changed, the failed ones included: what those leave stays in
/// the folder.
#[derive(Debug, Clone)]
pub struct Touched {
    /// The files before the first of them, as a tree.
    first: Sha,
    paths: BTreeSet<OsString>,
}

/// The paths that differ from the last commit, each with its [`fingerprint`].
type Changes = BTreeMap<OsString, Option<Vec<u8>>>;

impl InPlace<'_> {
    fn changes(&self) -> Result<Option<Changes>, GitError> {
        let Some(repo) = &self.repo else { return Ok(None) };
        let except: Vec<&Path> = self.exclude.iter().map(PathBuf::as_path).collect();
        let paths = repo.changed_now(&except)?;
        Ok(Some(
            paths.into_iter().map(|path| (path.clone(), fingerprint(&repo.root().join(&path)))).collect(),
        ))
    }

    /// All files as a tree, where what a phase changes is looked at.
    fn snapshot(&self, node: usize) -> Option<Sha> {
        let repo = self.repo.as_ref().filter(|_| self.runner.looks_at_changes(node))?;
        let except: Vec<&Path> = self.exclude.iter().map(PathBuf::as_path).collect();
        repo.snapshot(&except).ok()
    }

    /// Looks at what a phase's attempts have changed, this one and those before it.
    fn look_at_changes(
        &self,
        node: usize,
        before: Option<Sha>,
        reporter: &Reporter,
        result: &mut AttemptResult,
    ) {
        let (Some(repo), Some(before), Some(after)) = (&self.repo, before, self.snapshot(node)) else {
            return;
        };
        let paths = |from: &Sha| -> BTreeSet<OsString> {
            let changed = repo.changed_paths(from, &after).unwrap_or_default();
            changed.into_iter().map(|changed| changed.path).collect()
        };
        let mut all = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        let touched =
            all.entry(node).or_insert_with(|| Touched { first: before.clone(), paths: BTreeSet::new() });
        touched.paths.extend(paths(&before));
        if result.fault.is_some() {
            return;
        }
        // What another phase changed in between is not this one's.
        let now = paths(&touched.first);
        let own: Vec<&OsStr> = touched.paths.intersection(&now).map(OsString::as_os_str).collect();
        let change = WorkChange {
            paths: own.iter().map(|path| path.to_string_lossy()).collect(),
            patch: &|| repo.patch(&touched.first, &after, &own).ok(),
        };
        self.runner.look_for_weakening(node, &change, reporter, result);
    }

    /// Says what is not done where phases run in the folder itself.
    fn note_limits(&self, reporter: &Reporter) {
        let to_come = || self.runner.to_come.iter().map(|node| &self.runner.equipment[*node]);
        if to_come().any(|equipment| equipment.setup.is_some()) {
            let text = "`setup` is not run: it is for worktrees, and phases run in the folder itself";
            reporter.note(Note::Message(text.into()));
        }
        if self.repo.is_none() && to_come().any(|equipment| !equipment.protect.is_empty()) {
            let text = "`protect` is not checked: outside git it is not known what a phase changes";
            reporter.note(Note::Message(text.into()));
        }
    }

    fn attempt_in_folder(&self, job: &AttemptJob, reporter: &Reporter) -> Result<AttemptResult, Box<Fault>> {
        let before = self.changes().map_err(|error| git_fault(&error))?;
        let head = self.head();
        let tree = self.snapshot(job.node);
        let changed = || {
            let now = self.changes().ok()?;
            before.as_ref().zip(now).map(|(before, now)| *before != now || head != self.head())
        };
        let dir = AttemptDir {
            tip: job.tip.clone(),
            node: job.node,
            attempt: job.attempt,
            folder: &self.folder,
            slot: 1,
            previous: None,
            moved_since: false,
            // Nobody has touched the folder since.
            has_earlier_work: true,
            stop: &job.stop,
            reporter,
        };
        let mut result = self.runner.perform(job, &dir, &changed);
        self.look_at_changes(job.node, tree, reporter, &mut result);
        if let (Some(before), Some(after)) = (&before, self.changes().map_err(|error| git_fault(&error))?) {
            let mut own = changed_paths(before, &after);
            if self.commit == CommitMode::Auto {
                // What earlier attempts left that failed or were cut off is part of this phase,
                // too.
                let users =
                    |path: &OsString| self.before.iter().any(|known| known.raw() == path.to_string_lossy());
                own.extend(after.keys().filter(|path| !users(path)).cloned());
                own.sort();
                own.dedup();
            }
            if let Some(odd) =
                own.iter().find(|path| path.to_str().is_none()).filter(|_| self.commit != CommitMode::None)
            {
                let mut fault = Fault::new(Reason::VcsError);
                let name = odd.to_string_lossy();
                fault.cause = Some(SafeText::new(format!(
                    "the name of a file is not UTF-8, and cannot be recorded: {name}"
                )));
                fault.suggested_action =
                    "run it in worktrees, without --isolation none, or rename the file".into();
                result.fault.get_or_insert_with(|| Box::new(fault));
            }
            result.delivery.paths = own.iter().map(|path| SafeText::new(path.to_string_lossy())).collect();
        }
        if head != self.head() && head.is_some() {
            result.delivery.own_commits = 1;
            let id = self.runner.phase(job.node).id.shown();
            reporter.note(Note::Message(SafeText::new(format!(
                "{id} made commits by itself; they stay on your branch"
            ))));
        }
        Ok(result)
    }

    /// What is known of the new tip, to be recorded.
    fn advance(&self, job: &IntegrationJob) -> Vec<EventKind> {
        let old = job.tip.clone().unwrap_or_default();
        self.runner.advance_baseline(job.node, &old).into_iter().collect()
    }

    fn head(&self) -> Option<String> {
        self.repo.as_ref()?.head().ok()?.sha.map(|sha| sha.to_string())
    }

    /// Commits the paths that a phase changed, unless a killed process has done it already.
    fn commit_phase(&self, job: &IntegrationJob) -> Result<IntegrationResult, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let nothing = || self.runner.unchanged(job.node);
        let Some(repo) = self.repo.as_ref().filter(|_| self.commit == CommitMode::Auto) else {
            return Ok(nothing());
        };
        let message = self.runner.commit_message(job.node, &job.delivery);
        let subject = SafeText::new(message.lines().next().unwrap_or_default());
        let head = repo.head().map_err(fault)?.sha.map(|sha| sha.to_string());
        if job.resumed
            && head.is_some()
            && head != job.tip
            && job.tip.is_some()
            && repo.last_message_is(&message).map_err(fault)?
        {
            return Ok(IntegrationResult::Done {
                tip: head.clone(),
                commit: head.map(|head| (head, subject)),
                events: Vec::new(),
            });
        }
        let paths: Vec<OsString> = job.delivery.paths.iter().map(|path| path.raw().into()).collect();
        if paths.is_empty() {
            return Ok(nothing());
        }
        match repo.commit_paths(&paths, &message) {
            Ok(sha) => {
                let sha = sha.sha.to_string();
                let events = self.advance(job);
                Ok(IntegrationResult::Done { tip: Some(sha.clone()), commit: Some((sha, subject)), events })
            }
            Err(CommitTrouble::NoChange) => Ok(nothing()),
            Err(trouble) => Ok(IntegrationResult::Failed(commit_fault(&trouble))),
        }
    }

    fn conclude_in_folder(&self, record: &RunRecord, reporter: &Reporter) -> Result<Conclusion, Box<Fault>> {
        let Some(repo) = &self.repo else { return Ok(Conclusion::nothing()) };
        let of = |at: usize| record.phase(at).node.delivery.clone().unwrap_or_default();
        let paths =
            |at: usize| -> Vec<OsString> { of(at).paths.iter().map(|path| path.raw().into()).collect() };
        let all: BTreeSet<OsString> = (0..record.len()).flat_map(paths).collect();
        let mut conclusion = Conclusion { files_changed: Some(all.len() as u64), ..Conclusion::nothing() };
        match self.commit {
            CommitMode::Auto => conclusion.work = on_branch(repo)?,
            CommitMode::Single => {
                let message = single_message(self.runner, record);
                let all: Vec<OsString> = all.into_iter().collect();
                match repo.commit_paths(&all, &message) {
                    Ok(sha) => {
                        let subject = SafeText::new(message.lines().next().unwrap_or_default());
                        conclusion.commit = Some((sha.sha.to_string(), subject));
                    }
                    Err(CommitTrouble::NoChange) => conclusion.commit.clone_from(&record.one_commit),
                    Err(trouble) => return Err(commit_fault(&trouble)),
                }
                if conclusion.commit.is_some() {
                    conclusion.work = on_branch(repo)?;
                }
            }
            CommitMode::MessageOnly => {
                let entry = |at: usize| ScriptEntry {
                    message: self.runner.commit_message(at, &of(at)),
                    paths: paths(at),
                    ..ScriptEntry::default()
                };
                let entries: Vec<ScriptEntry> =
                    (0..record.len()).map(entry).filter(|entry| !entry.paths.is_empty()).collect();
                let command = write_script(self.runner, reporter, entries);
                conclusion.work = Some(WorkAt::Uncommitted { command });
            }
            CommitMode::None => conclusion.work = Some(WorkAt::Uncommitted { command: None }),
        }
        Ok(conclusion)
    }
}

/// The commit that is checked out, as where the work is.
fn on_branch(repo: &Repo) -> Result<Option<WorkAt>, Box<Fault>> {
    let head = repo.head().map_err(|error| git_fault(&error))?;
    Ok(head.sha.map(|sha| WorkAt::Landed {
        branch: SafeText::new(super::landing::branch_name(head.branch.as_deref())),
        sha: SafeText::new(sha.short()),
    }))
}

/// The paths whose fingerprints differ.
fn changed_paths(before: &Changes, after: &Changes) -> Vec<OsString> {
    let all: BTreeSet<&OsString> = before.keys().chain(after.keys()).collect();
    all.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// What tells whether a path was changed: the hash of a file, the target of a link. Nothing where
/// the path is gone.
fn fingerprint(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() {
        return std::fs::read_link(path).ok().map(|to| [b"link ", OsStr::as_bytes(to.as_os_str())].concat());
    }
    if found.is_dir() || found.len() > COMPARED_BYTES_MAX {
        return Some(format!("{} {:?}", found.len(), found.modified().ok()).into_bytes());
    }
    match named::read(path, COMPARED_BYTES_MAX) {
        Ok(content) => Some(Sha256::of(&content).bytes().to_vec()),
        Err(FileError::Refused { .. }) => Some(b"not a regular file".to_vec()),
        Err(_) => None,
    }
}

impl Executor for InPlace<'_> {
    type Record = RunRecord;
    type Conclusion = Conclusion;

    fn integrates(&self) -> bool {
        self.repo.is_some() && self.commit == CommitMode::Auto
    }

    fn attempt(&self, job: &AttemptJob, reporter: &Reporter) -> AttemptResult {
        let began = now();
        let result =
            self.attempt_in_folder(job, reporter).unwrap_or_else(|fault| AttemptResult::failed(*fault));
        AttemptResult { duration: began.elapsed(), ..result }
    }

    fn refused(&self, job: &AttemptJob, fault: &Fault) {
        self.runner.log_refusal(job, fault);
    }

    fn integrate(&self, job: &IntegrationJob, _: &Reporter) -> IntegrationResult {
        self.commit_phase(job).unwrap_or_else(IntegrationResult::Failed)
    }

    fn prepare(&self, stop: &Stop, reporter: &Reporter) -> Result<Vec<EventKind>, Box<Fault>> {
        self.note_limits(reporter);
        let dir = AttemptDir {
            tip: None,
            node: 0,
            attempt: 0,
            folder: &self.folder,
            slot: 1,
            previous: None,
            moved_since: false,
            has_earlier_work: false,
            stop,
            reporter,
        };
        self.runner.check_base(&dir, None)
    }

    fn conclude(
        &self,
        record: &RunRecord,
        _: &Stop,
        reporter: &Reporter,
    ) -> Result<Concluded<Conclusion>, Box<Fault>> {
        let concluded = self.conclude_in_folder(record, reporter)?;
        Ok(concluded.beside(self.runner).recorded(record))
    }
}
