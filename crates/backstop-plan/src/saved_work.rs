//! Work of a run that lies in the repository: what an attempt changed, and the refs that hold what
//! is not on the user's branch.

use crate::Ending;
use crate::runs::FoundRun;
use crate::start::{RunError, folder_name, lock_name};
use crate::workspace::{noted_attempt, slot_folder};
use backstop_core::{Name, RunId, SafeText};
use backstop_report::plan::AttemptChanges;
use backstop_runtime::Project;
use backstop_store::Held;
use backstop_work::git::{Changed, Repo, Sha, attempt_ref, tip_ref};

/// What an attempt of a phase changed.
#[derive(Debug)]
pub struct SavedAttempt {
    /// The phase's id.
    pub phase: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The ref that holds it; of work that no start of the run has saved yet, its worktree.
    pub reference: String,
    /// The commit that it began from.
    pub base: Sha,
    /// The commit that holds its tree; of work that is not saved yet, the tree.
    pub commit: Sha,
    repo: Repo,
}

impl SavedAttempt {
    /// The changes, as reports show them.
    pub fn changes(&self, run: RunId) -> Result<AttemptChanges, RunError> {
        let paths = self.repo.changed_paths(&self.base, &self.commit)?;
        let path = |changed: &Changed| (changed.path.to_string_lossy().into_owned(), changed.how.name());
        Ok(AttemptChanges {
            run,
            phase: self.phase.clone(),
            attempt: self.attempt,
            reference: self.reference.clone(),
            base: self.base.to_string(),
            commit: self.commit.to_string(),
            paths: paths.iter().map(path).collect(),
            diff: SafeText::from_bytes(&self.repo.diff(&self.base, &self.commit)?),
        })
    }
}

impl FoundRun {
    /// The attempt of a phase that was asked for, else its last one. Gives the phase's place in the
    /// plan and the attempt.
    pub fn attempt(&self, given: &str, attempt: Option<u32>) -> Result<(usize, u32), RunError> {
        let at = self.phase(given)?;
        let total = self.record.phase(at).node.total;
        let attempt = attempt.unwrap_or(total);
        if total == 0 {
            return Err(RunError::NotRunYet { phase: given.to_owned() });
        }
        if attempt == 0 || attempt > total {
            return Err(RunError::NoAttempt { phase: given.to_owned(), attempt, total });
        }
        Ok((at, attempt))
    }

    /// What an attempt of a phase has changed, where it was saved.
    pub fn saved_attempt(
        &self,
        project: &Project,
        given: &str,
        attempt: Option<u32>,
    ) -> Result<SavedAttempt, RunError> {
        let not_saved = || RunError::NotSaved { phase: given.to_owned() };
        let phase = self.record.phase(self.phase(given)?);
        let attempt = attempt.unwrap_or(phase.node.total);
        let repo = Repo::find(&project.root)?.ok_or_else(not_saved)?;
        let id = phase.plan.id.parse().map_err(|_| not_saved())?;
        let reference = attempt_ref(self.run, &id, attempt);
        let Some(commit) = repo.read_ref(&reference)? else {
            return self.left_in_worktree(project, repo, &id, attempt)?.ok_or_else(not_saved);
        };
        let base = self.base_of(&phase.plan.id, attempt).ok_or_else(not_saved)?;
        let phase = phase.plan.id.clone();
        Ok(SavedAttempt { phase, attempt, reference, base, commit, repo })
    }

    /// What an attempt that was cut off left in its worktree, while nobody works there.
    fn left_in_worktree(
        &self,
        project: &Project,
        repo: Repo,
        phase: &Name,
        attempt: u32,
    ) -> Result<Option<SavedAttempt>, RunError> {
        let Held::Ours(_hold) = project.hold(&lock_name(self.record.path().raw()))? else { return Ok(None) };
        let folder = project.folder()?.work_folder(&project.root, &folder_name(self.run, "slots"))?;
        let folders = (1..).map(|number| slot_folder(&folder, number)).take_while(|path| path.is_dir());
        for path in folders {
            let Some(slot) = repo.open_slot(&path)? else { continue };
            if noted_attempt(&slot).is_none_or(|noted| noted != (phase.clone(), attempt)) {
                continue;
            }
            let base = slot.at()?;
            let commit = slot.state(&base)?.tree;
            let (phase, reference) = (phase.to_string(), path.display().to_string());
            return Ok(Some(SavedAttempt { phase, attempt, reference, base, commit, repo }));
        }
        Ok(None)
    }
}

/// Refs that hold work which is not on the user's branch: the tip, where it is not there, and what
/// failed.
pub fn unlanded_refs(project: &Project, ending: &Ending) -> Vec<SafeText> {
    let (Some(run), Ok(Some(repo))) = (ending.record.progress.run, Repo::find(&project.root)) else {
        return Vec::new();
    };
    if ending.record.plan.isolation == "none" {
        return Vec::new();
    }
    let Ok(refs) = repo.runs_refs(run) else { return Vec::new() };
    let failed: Vec<&str> = ending
        .record
        .phases()
        .filter(|phase| phase.node.last_error().is_some() || phase.node.lost)
        .map(|phase| phase.plan.id.as_str())
        .collect();
    let tip = tip_ref(run);
    let head = repo.head().ok().and_then(|head| head.sha);
    let of_failed =
        |name: &str| failed.iter().any(|id| name.contains(&format!("/{id}/")) && !name.ends_with("-merged"));
    let unlanded = |sha: &Sha| head.as_ref().is_none_or(|head| !repo.contains(head, sha).unwrap_or(false));
    let wanted = refs.iter().filter(|(name, sha)| (*name == tip && unlanded(sha)) || of_failed(name));
    wanted.map(|(name, _)| SafeText::new(name.clone())).collect()
}
