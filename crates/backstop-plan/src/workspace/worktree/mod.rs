//! Runs phases in git worktrees: each attempt starts from the run's tip, is saved on a ref whether
//! it succeeds or not, and is integrated alone.
//!
//! Crash safety relies on the order of steps: an attempt is saved before it is reported; the tip
//! moves by compare-and-swap after its commit exists; the user's branch follows the tip. Each step
//! can be repeated.

mod integrate;
mod set_up;
mod slots;
mod verify;

use super::attempt_log::now;
use super::commit_mode::CommitMode;
use super::faults::{commit_fault, git_fault, state_invalid};
use super::landing::{Conclusion, Landed};
use super::phase_runner::{AttemptDir, PhaseRunner};
use super::weakened::WorkChange;
use crate::record::RunRecord;
use backstop_core::{Delivery, EventKind, Fault, Reason, RunId, SafeText, WorkAt};
use backstop_exec::Stop;
use backstop_runtime::host::{
    AttemptJob, AttemptResult, Concluded, Executor, IntegrationJob, IntegrationResult, Note, Reporter,
};
use backstop_work::git::{GitError, Repo, Sha, attempt_ref, tip_ref};
use slots::{SlotState, Slots};
pub(crate) use slots::{noted_attempt, slot_folder};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How many attempts that were refused before they began are passed over to find earlier work.
const REFUSED_MAX: usize = 20;

/// Runs phases in git worktrees.
pub struct Worktrees<'w> {
    runner: &'w PhaseRunner<'w>,
    repo: Repo,
    run: RunId,
    folder: PathBuf,
    commit: CommitMode,
    /// The branch that finished work is committed to.
    branch: Option<String>,
    /// The commit that is checked out in the user's tree.
    base: Sha,
    exclude: Vec<PathBuf>,
    link: Vec<String>,
    copy: Vec<String>,
    /// The commit that the run's first start began from.
    first_base: Sha,
    /// The run's tip, where it has yet to be brought together with the user's commits.
    meet: Option<Sha>,
    slots: Mutex<Slots>,
    /// The commit that the user's branch was moved to last, and why it could not be moved further.
    landed: Mutex<(Sha, Option<Landed>)>,
}

/// What [`Worktrees`] are made from.
pub struct WorktreeSetup {
    /// The repository.
    pub repo: Repo,
    /// The folder in which worktree slots are created.
    pub folder: PathBuf,
    /// How finished phases are committed.
    pub commit: CommitMode,
    /// The branch that finished work is committed to.
    pub branch: Option<String>,
    /// The commit that is checked out in the user's tree.
    pub base: Sha,
    /// Paths that are never a phase's work: the plan's file, the views.
    pub exclude: Vec<PathBuf>,
    /// Paths of the project that each worktree gets as links.
    pub link: Vec<String>,
    /// Paths of the project that each worktree gets as copies.
    pub copy: Vec<String>,
    /// The commit that the run's first start began from.
    pub first_base: Sha,
    /// The run's tip, where it has yet to be brought together with what the user has committed
    /// since.
    pub meet: Option<Sha>,
}

impl<'w> Worktrees<'w> {
    /// No slot is created yet.
    pub fn new(runner: &'w PhaseRunner<'w>, setup: WorktreeSetup) -> Self {
        let WorktreeSetup { repo, folder, commit, branch, base, exclude, link, copy, first_base, meet } =
            setup;
        let landed = Mutex::new((base.clone(), None));
        let run = runner.recorder.run();
        let slots = Mutex::default();
        Self {
            runner,
            repo,
            run,
            folder,
            commit,
            branch,
            base,
            exclude,
            link,
            copy,
            first_base,
            meet,
            slots,
            landed,
        }
    }

    fn tip_commit(&self, tip: Option<&String>) -> Result<Sha, Box<Fault>> {
        match tip {
            Some(tip) => tip.parse().map_err(|error| state_invalid(&format!("the tip of the run: {error}"))),
            None => Ok(self.base.clone()),
        }
    }

    fn attempt_in_slot(&self, job: &AttemptJob, reporter: &Reporter) -> Result<AttemptResult, Box<Fault>> {
        let base = self.tip_commit(job.tip.as_ref())?;
        let session = self.runner.session_to_continue(job);
        let folder = session.as_ref().map(|session| Path::new(&session.folder));
        let mut slot_state = self.take_for(folder).map_err(|error| git_fault(&error))?;
        let done = self.attempt_in(job, reporter, &base, &mut slot_state);
        match &done {
            Ok(result) if result.fault.is_none() => {
                self.slots().held.insert(job.node, slot_state);
            }
            Ok(_) => self.give_back(slot_state),
            // Git fails in this slot: it is left as it is, and the next attempt gets another one.
            Err(_) => {}
        }
        done
    }

    fn attempt_in(
        &self,
        job: &AttemptJob,
        reporter: &Reporter,
        base: &Sha,
        slot_state: &mut SlotState,
    ) -> Result<AttemptResult, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let reset = slot_state.reset_to(base).map_err(fault)?;
        for path in reset.put_aside {
            let text = format!("a repository inside the worktree was put aside: {}", path.display());
            reporter.note(Note::Message(SafeText::new(text)));
        }
        slot_state.slot.provide(self.repo.root(), &self.link, &self.copy).map_err(fault)?;
        let base_tree = self.repo.tree_of(base).map_err(fault)?;
        let phase = self.runner.phase(job.node).id.key();
        let saved_of = |n: u32| self.repo.read_ref(&attempt_ref(self.run, phase, n)).ok().flatten();
        let is_told = job.previous.is_some() || job.lost;
        // An attempt that was refused before it began has saved nothing: the one before it counts.
        let mut earlier_attempts = (1..job.attempt).rev().take(REFUSED_MAX).filter(|_| is_told);
        let previous = earlier_attempts.find_map(saved_of);
        slot_state.note_attempt(phase, job.attempt);
        // Whoever continues a session finds the files as it left them, unless others have moved the
        // tip meanwhile.
        let session = self.runner.session_to_continue(job);
        let earlier = session.and_then(|session| saved_of(session.attempt));
        let earlier = earlier.filter(|saved| self.repo.contains(saved, base).unwrap_or(false));
        if let Some(saved) = &earlier {
            slot_state.slot.restore(saved).map_err(fault)?;
        }
        let message = self.runner.commit_message(job.node, &Delivery::default());
        slot_state.slot.set_submodule_message(message);
        let last_state = RefCell::new(None);
        let mut result = {
            let changed = || {
                let state = slot_state.slot.state(base).ok()?;
                let is_changed = state.tree != base_tree;
                last_state.replace(Some(state));
                Some(is_changed)
            };
            let dir = AttemptDir {
                tip: Some(base.to_string()),
                node: job.node,
                attempt: job.attempt,
                folder: slot_state.slot.path(),
                slot: slot_state.number,
                previous: previous.as_ref().map(Sha::to_string),
                moved_since: previous
                    .as_ref()
                    .is_some_and(|previous| !self.repo.contains(previous, base).unwrap_or(true))
                    && self.people_committed_since(phase.as_str()),
                has_earlier_work: earlier.is_some(),
                stop: &job.stop,
                reporter,
            };
            match self.set_up(slot_state, &dir) {
                Ok(()) => self.runner.perform(job, &dir, &changed),
                Err(fault) => AttemptResult::failed(*fault),
            }
        };
        let name = attempt_ref(self.run, phase, job.attempt);
        let message = self.runner.commit_message(job.node, &result.delivery);
        // Work that was judged to be done was looked at after its gates; nobody has worked there
        // since.
        let saved = match last_state.take().filter(|_| result.fault.is_none()) {
            Some(state) => slot_state.slot.save_state(state, base, &name, &message),
            None => slot_state.slot.save(base, &name, &message),
        };
        let saved = saved.map_err(fault)?;
        if result.fault.is_none() && !saved.unsaved.is_empty() {
            result.fault = Some(Box::new(unsaved_repositories(&saved.unsaved)));
        }
        if result.fault.is_none() && !saved.unfiltered.is_empty() {
            result.fault = Some(Box::new(needs_filter(&saved.unfiltered, self.repo.missing_filters())));
        }
        if result.fault.is_none() && saved.changed.is_empty() && super::briefing::conflict(job).is_some() {
            result.fault = Some(Box::new(rerun_changed_nothing()));
        }
        if result.fault.is_none() {
            let change = WorkChange {
                paths: saved.changed.iter().map(|changed| changed.path.to_string_lossy()).collect(),
                patch: &|| self.repo.patch(base, &saved.sha, &[]).ok(),
            };
            self.runner.look_for_weakening(job.node, &change, reporter, &mut result);
        }
        if result.delivery.message.is_none() {
            result.delivery.message = saved.own_commits.first().map(|commit| commit.subject.clone());
        }
        result.delivery.own_commits = u32::try_from(saved.own_commits.len()).unwrap_or(u32::MAX);
        result.delivery.saved = Some(saved.sha.to_string());
        result.delivery.base = Some(base.to_string());
        if !saved.own_commits.is_empty() {
            let text = format!(
                "{} made {} by itself; they are a part of this phase",
                self.runner.phase(job.node).id.shown(),
                match saved.own_commits.len() {
                    1 => "a commit".to_owned(),
                    n => format!("{n} commits"),
                }
            );
            reporter.note(Note::Message(SafeText::new(text)));
        }
        slot_state.set_saved(&saved);
        Ok(result)
    }

    /// Whether commits of people came in since the last attempt of a phase ended. What other phases
    /// bring in says nothing about this one's work.
    fn people_committed_since(&self, phase: &str) -> bool {
        let events = self.runner.recorder.events();
        let is_end = |kind: &EventKind| match kind {
            EventKind::AttemptFinished { operation, .. } | EventKind::AttemptLost { operation, .. } => {
                operation.raw() == phase
            }
            _ => false,
        };
        let Some(last) = events.iter().rposition(|event| is_end(&event.kind)) else { return false };
        events[last..].iter().any(|event| match &event.kind {
            EventKind::IntegrationFinished { operation, .. } => operation.raw() == verify::MEANWHILE,
            _ => false,
        })
    }

    /// Brings the work to the user once every phase is complete. What the user has committed since
    /// the run was started is brought together with it, and checked, first.
    pub fn conclude(
        &self,
        record: &RunRecord,
        stop: &Stop,
        reporter: &Reporter,
    ) -> Result<Conclusion, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let mut tip = self.tip_commit(record.progress.tip.as_ref())?;
        let mut base = self.base.clone();
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        if let Some(head) = self.moved_head(&tip, &landed).map_err(fault)?
            && let Some(merged) = self.bring_together(&tip, &head, &record.to_come(), stop, reporter)?
        {
            (tip, base, landed) = (merged, head.clone(), head);
        }
        super::landing::conclude(
            self.runner,
            &super::landing::ConcludeParts {
                repo: &self.repo,
                run: self.run,
                commit: self.commit,
                branch: self.branch.as_deref(),
                base: &base,
                tip: &tip,
                landed: &landed,
                exclude: &self.exclude,
                reporter,
            },
            record,
            &mut |tree, parent, message| {
                let mut slot_state = self.take_free()?;
                slot_state.reset_to(parent)?;
                let made = slot_state.commit(&self.repo, tree, parent, message);
                if made.is_ok() {
                    self.give_back(slot_state);
                }
                Ok(made.map(|made| made.sha))
            },
        )
        .map_err(|error| match error {
            super::landing::ConcludeError::Git(error) => fault(error),
            super::landing::ConcludeError::Commit(error) => commit_fault(&error),
        })
    }

    /// The commit that is checked out on the run's branch, where somebody else has moved it.
    fn moved_head(&self, tip: &Sha, landed: &Sha) -> Result<Option<Sha>, GitError> {
        let head = self.repo.head()?;
        let Some(sha) = head.sha.filter(|_| head.branch == self.branch && head.underway.is_none()) else {
            return Ok(None);
        };
        let is_ours = sha == *landed || sha == self.base || self.repo.contains(tip, &sha)?;
        Ok((!is_ours).then_some(sha))
    }
}

impl Executor for Worktrees<'_> {
    type Record = RunRecord;
    type Conclusion = Conclusion;

    fn integrates(&self) -> bool {
        true
    }

    fn attempt(&self, job: &AttemptJob, reporter: &Reporter) -> AttemptResult {
        let began = now();
        let result =
            self.attempt_in_slot(job, reporter).unwrap_or_else(|fault| AttemptResult::failed(*fault));
        AttemptResult { duration: began.elapsed(), ..result }
    }

    fn refused(&self, job: &AttemptJob, fault: &Fault) {
        self.runner.log_refusal(job, fault);
    }

    fn integrate(&self, job: &IntegrationJob, reporter: &Reporter) -> IntegrationResult {
        let done = self.integrate_work(job, reporter);
        // Its slot is free, whether it was integrated or not.
        if let Some(slot_state) = self.take_held(job.node) {
            self.give_back(slot_state);
        }
        done.unwrap_or_else(IntegrationResult::Failed)
    }

    fn prepare(&self, stop: &Stop, reporter: &Reporter) -> Result<Vec<EventKind>, Box<Fault>> {
        if !self.repo.missing_filters().is_empty() {
            let text = format!(
                "the program of the git filter {} is not installed: its files are as the repository has them",
                self.repo.missing_filters().join(", ")
            );
            reporter.note(Note::Message(SafeText::new(text)));
        }
        self.check_start(stop, reporter)
    }

    fn prepared(&self, record: &RunRecord) -> Result<(), Box<Fault>> {
        set_tip(&self.repo, self.run, &self.base, record).map_err(|error| git_fault(&error))
    }

    fn conclude(
        &self,
        record: &RunRecord,
        stop: &Stop,
        reporter: &Reporter,
    ) -> Result<Concluded<Conclusion>, Box<Fault>> {
        let concluded = Worktrees::conclude(self, record, stop, reporter)?;
        match &concluded.work {
            // A run is complete when the user has the work. Until then it is halted, and resuming
            // it tries again.
            Some(WorkAt::Kept { reference, why, command }) => {
                let mut fault = Fault::new(Reason::VcsError);
                fault.cause =
                    Some(SafeText::new(format!("it is kept on {}: {}", reference.raw(), why.raw())));
                fault.suggested_action = SafeText::new(format!("Bring it in: `{}`", command.raw()));
                Err(Box::new(fault))
            }
            _ => Ok(concluded.beside(self.runner).recorded(record)),
        }
    }
}

/// The tip of a run is a ref of its own: nothing that it reaches is ever collected.
pub(crate) fn set_tip(repo: &Repo, run: RunId, base: &Sha, record: &RunRecord) -> Result<(), GitError> {
    let name = tip_ref(run);
    let tip: Sha =
        record.progress.tip.as_ref().and_then(|tip| tip.parse().ok()).unwrap_or_else(|| base.clone());
    let now = repo.read_ref(&name)?;
    let behind = match &now {
        None => true,
        // Recorded and not carried out yet.
        Some(now) => *now != tip && repo.contains(&tip, now)?,
    };
    if behind {
        repo.set_ref(&name, &tip, now.as_ref())?;
    }
    Ok(())
}

/// A nested repository is saved by git as a link only: its content would be lost silently.
fn unsaved_repositories(paths: &[PathBuf]) -> Fault {
    let names: Vec<String> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let mut fault = Fault::new(Reason::VcsError);
    fault.cause = Some(SafeText::new(format!(
        "a repository inside the worktree cannot be kept with the phase's work: {}",
        names.join(", ")
    )));
    fault.suggested_action =
        SafeText::new("remove its `.git` folder, or work on it in a phase of its own repository");
    fault
}

/// Committed without its filter, a file would be in the repository as nobody wants it: a large file
/// in place of a pointer, a secret in place of its cipher.
fn needs_filter(paths: &[PathBuf], filters: &[String]) -> Fault {
    let names: Vec<String> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let filters = filters.join(", ");
    let mut fault = Fault::new(Reason::DependencyMissing);
    fault.cause = Some(SafeText::new(format!(
        "written files need the git filter {filters}, whose program is not installed: {}",
        names.join(", ")
    )));
    fault.suggested_action = SafeText::new(if filters == "lfs" {
        "install git-lfs, then run the same command again".to_owned()
    } else {
        format!("install the program of the filter {filters} (`git config --get-regexp ^filter`)")
    });
    fault
}

/// The re-run after a conflict changed nothing: the first work is only on its ref.
fn rerun_changed_nothing() -> Fault {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    fault.cause =
        Some("after a conflict it was run again and changed nothing; its first work is not in".into());
    fault
}
