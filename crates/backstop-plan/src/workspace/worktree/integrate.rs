//! Integrates a phase's work: merges it onto the run's tip, runs the gates again if the tip had
//! moved, commits, moves the tip and fast-forwards the user's branch.

use super::Worktrees;
use super::slots::SlotState;
use crate::workspace::CONFLICT;
use crate::workspace::commit_mode::CommitMode;
use crate::workspace::faults::{commit_fault, git_fault, state_invalid};
use crate::workspace::landing::Landed;
use crate::workspace::phase_runner::AttemptDir;
use backstop_core::{Evidence, Fault, Reason, SafeText};
use backstop_runtime::host::{IntegrationJob, IntegrationResult, Note, Reporter};
use backstop_work::git::{CommitTrouble, Conflict, GitError, Merged, Sha, attempt_ref, tip_ref};
use std::ffi::OsStr;
use std::sync::PoisonError;

/// How much of a conflict's lines is recorded.
const HUNKS_CHARS_MAX: usize = 8000;

impl Worktrees<'_> {
    pub(super) fn integrate_work(
        &self,
        job: &IntegrationJob,
        reporter: &Reporter,
    ) -> Result<IntegrationResult, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        if self.runner.equipment[job.node].asked.is_some() {
            // Only its words were wanted; what it changed stays on its ref.
            return Ok(IntegrationResult::Done { tip: None, commit: None, events: Vec::new() });
        }
        let tip_name = tip_ref(self.run);
        let tip = self.tip_commit(job.tip.as_ref())?;
        let now = self.repo.read_ref(&tip_name).map_err(fault)?;
        if let Some(now) = now.as_ref().filter(|now| **now != tip) {
            // A killed process had moved the tip already; nobody else moves this ref.
            if !job.resumed || !self.repo.contains(now, &tip).map_err(fault)? {
                return Err(state_invalid(&format!(
                    "{tip_name} is at {now}, and by the record it is at {tip}"
                )));
            }
            self.fast_forward(now, reporter);
            return Ok(self.integrated(job, Some(now.clone())));
        }
        let parse = |text: &Option<String>| -> Result<Sha, Box<Fault>> {
            let text = text.as_ref().ok_or_else(|| state_invalid("the work of a phase was not saved"))?;
            text.parse().map_err(|error| state_invalid(&format!("the saved work of a phase: {error}")))
        };
        let (saved, base) = (parse(&job.delivery.saved)?, parse(&job.delivery.base)?);
        let tree = self.repo.tree_of(&saved).map_err(fault)?;
        if tree == self.repo.tree_of(&base).map_err(fault)? {
            // Its gates ran on the tip, unless that has moved meanwhile.
            return Ok(match tip == base {
                true => self.runner.unchanged(job.node),
                false => IntegrationResult::unchanged(),
            });
        }
        reporter.note(Note::Integrating);
        let merged =
            if tip == base { Merged::Clean(tree) } else { self.repo.merge(&tip, &saved).map_err(fault)? };
        let tree = match merged {
            Merged::Clean(tree) => tree,
            Merged::Conflicted(conflicts) => return Ok(self.conflicted(job, &base, &tip, &conflicts)),
        };
        if tree == self.repo.tree_of(&tip).map_err(fault)? {
            // The tip has the same content already.
            return Ok(IntegrationResult::unchanged());
        }
        let mut slot_state = match self.take_held(job.node) {
            Some(slot_state) => slot_state,
            None => self.take_free().map_err(fault)?,
        };
        let done = self.commit_merged(job, reporter, &mut slot_state, &tip, &base, &saved, &tree);
        self.give_back(slot_state);
        let Some(new) = done? else { return Ok(IntegrationResult::unchanged()) };
        let new = match new {
            Ok(new) => new,
            Err(integrated) => return Ok(*integrated),
        };
        if !self.repo.set_ref(&tip_name, &new, Some(&tip)).map_err(fault)? {
            return Err(state_invalid(&format!("{tip_name} was moved by somebody else")));
        }
        self.fast_forward(&new, reporter);
        Ok(self.integrated(job, Some(new)))
    }

    /// Commits the merged tree, after its gates. `None`: there is nothing to commit. `Some(Err)`: a
    /// gate or a commit hook refuses it.
    #[expect(clippy::too_many_arguments)] // One caller; they are the parts of one step.
    pub(super) fn commit_merged(
        &self,
        job: &IntegrationJob,
        reporter: &Reporter,
        slot_state: &mut SlotState,
        tip: &Sha,
        base: &Sha,
        saved: &Sha,
        tree: &Sha,
    ) -> Result<Option<Result<Sha, Box<IntegrationResult>>>, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let message = self.runner.commit_message(job.node, &job.delivery);
        slot_state.saved.get_or_insert_with(|| saved.clone());
        if tip != base && !self.runner.equipment[job.node].gates.is_empty() {
            let merged =
                self.repo.commit_tree(tree, &[tip, saved], "merged, not checked yet").map_err(fault)?;
            if let Some(refused) = self.check_merged(job, reporter, slot_state, &merged)? {
                return Ok(Some(Err(Box::new(refused))));
            }
        }
        if self.commit != CommitMode::Auto {
            return Ok(Some(Ok(self.repo.commit_tree(tree, &[tip], &message).map_err(fault)?)));
        }
        // Files that are right already are not written again, so that build caches stay valid.
        if tip != base || job.delivery.own_commits > 0 {
            slot_state.reset_to(tip).map_err(fault)?;
        }
        slot_state.saved = None;
        match slot_state.commit(&self.repo, tree, tip, &message) {
            Ok(committed) => Ok(Some(Ok(committed.sha))),
            Err(CommitTrouble::NoChange) => Ok(None),
            // The work is saved, and the slot is put right when it is used again.
            Err(trouble @ CommitTrouble::Git(GitError::Interrupted { .. })) => Err(commit_fault(&trouble)),
            Err(trouble) => {
                let name = attempt_ref(self.run, self.runner.phase(job.node).id.key(), job.attempt);
                let name = format!("{name}-refused");
                let saved = slot_state.slot.save(tip, &name, &message).map_err(fault)?;
                slot_state.set_saved(&saved);
                Ok(Some(Err(Box::new(IntegrationResult::Failed(commit_fault(&trouble))))))
            }
        }
    }

    /// Runs the gates on the merged tree. What fails there and did not fail on the phase's own tree
    /// is a conflict.
    pub(super) fn check_merged(
        &self,
        job: &IntegrationJob,
        reporter: &Reporter,
        slot_state: &mut SlotState,
        merged: &Sha,
    ) -> Result<Option<IntegrationResult>, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        slot_state.reset_to(merged).map_err(fault)?;
        let key = self.runner.phase(job.node).id.key();
        let checked = {
            let dir = AttemptDir {
                tip: job.tip.clone(),
                node: job.node,
                attempt: job.attempt,
                folder: slot_state.slot.path(),
                slot: slot_state.number,
                previous: None,
                moved_since: false,
                has_earlier_work: false,
                stop: &job.stop,
                reporter,
            };
            let log = self.runner.log(job.node, job.attempt);
            let checked = self.runner.run_gates(&dir, &log, "gates on the merged tree");
            log.finish();
            checked
        };
        let name = format!("{}-merged", attempt_ref(self.run, key, job.attempt));
        let saved = slot_state.slot.save(merged, &name, "the merged tree, after its gates");
        slot_state.set_saved(&saved.map_err(fault)?);
        let found = match checked {
            Ok(checks) => checks.into_iter().find(|checked| !checked.passed),
            Err(fault) => return Ok(Some(IntegrationResult::Failed(fault))),
        };
        let Some(found) = found else { return Ok(None) };
        let inner = found.fault.unwrap_or_else(|| Fault::new(Reason::Unknown));
        if matches!(inner.reason, Reason::Interrupted | Reason::DependencyMissing) {
            return Ok(Some(IntegrationResult::Failed(Box::new(inner))));
        }
        let cause =
            inner.cause.as_ref().map_or_else(|| inner.reason.code().to_owned(), |cause| cause.line(200));
        let mut fault = Fault::new(Reason::FileConflict);
        fault.cause = Some(SafeText::new(format!(
            "gate {} passes on this phase's own work and fails together with what came in meanwhile: {cause}",
            found.gate
        )));
        fault.facts = inner.facts;
        let output = self.runner.redactor.redact(&String::from_utf8_lossy(&found.tail)).into_owned();
        fault.evidence = vec![conflict_evidence(output)];
        let files = vec![format!("gate {} on the merged tree", found.gate)];
        Ok(Some(IntegrationResult::Conflicted { files, fault: Box::new(fault) }))
    }

    pub(super) fn conflicted(
        &self,
        job: &IntegrationJob,
        base: &Sha,
        tip: &Sha,
        conflicts: &[Conflict],
    ) -> IntegrationResult {
        if let Some(slot_state) = self.take_held(job.node) {
            self.give_back(slot_state);
        }
        let name = |conflict: &Conflict| conflict.path.to_string_lossy().into_owned();
        let files: Vec<String> = conflicts.iter().map(name).collect();
        let ranges = |ranges: &[(u32, u32)]| {
            let all: Vec<String> = ranges.iter().take(10).map(|(from, to)| format!("{from}-{to}")).collect();
            if all.is_empty() { String::new() } else { format!(" lines {}", all.join(", ")) }
        };
        let line = |conflict: &Conflict| {
            let others = self.phases_between(base, tip, conflict.path.as_os_str());
            format!(
                "{}: phase {} changed{}, {others} changed{}",
                SafeText::new(name(conflict)).line(200),
                self.runner.phase(job.node).id.shown(),
                ranges(&conflict.theirs),
                ranges(&conflict.ours),
            )
        };
        let lines: Vec<String> = conflicts.iter().take(10).map(line).collect();
        let mut fault = Fault::new(Reason::FileConflict);
        fault.cause = Some(SafeText::new(lines.join("; ")));
        fault.facts.files = files.iter().map(|file| SafeText::new(file.clone())).collect();
        let hunks: Vec<String> = conflicts.iter().map(|conflict| conflict.hunks.raw().to_owned()).collect();
        fault.evidence = vec![conflict_evidence(format!("{}\n\n{}", lines.join("\n"), hunks.join("\n")))];
        IntegrationResult::Conflicted { files, fault: Box::new(fault) }
    }

    /// The phases that were integrated between two tips and changed this file, in words.
    pub(super) fn phases_between(&self, base: &Sha, tip: &Sha, file: &OsStr) -> String {
        let commits = self.runner.recorder.events();
        let mut names = Vec::new();
        let mut before: Option<Sha> = None;
        for event in &commits {
            if let backstop_core::EventKind::IntegrationFinished { operation, tip: at } = &event.kind {
                let between = at.parse::<Sha>().is_ok_and(|at| {
                    self.repo.contains(tip, &at).unwrap_or(false)
                        && !self.repo.contains(base, &at).unwrap_or(true)
                });
                let at = at.parse::<Sha>().ok();
                let since = before.as_ref().unwrap_or(base);
                let changed = at.as_ref().and_then(|at| self.repo.changed_paths(since, at).ok());
                let has_part =
                    changed.is_none_or(|paths| paths.iter().any(|changed| changed.path.as_os_str() == file));
                if between && has_part {
                    names.push(operation.line(40).to_uppercase());
                }
                before = at.or(before);
            }
        }
        match names.len() {
            0 => "somebody else".to_owned(),
            1 => format!("phase {}", names[0]),
            _ => format!("phases {}", names.join(", ")),
        }
    }

    pub(super) fn integrated(&self, job: &IntegrationJob, tip: Option<Sha>) -> IntegrationResult {
        let subject = self.runner.commit_message(job.node, &job.delivery);
        let subject = SafeText::new(subject.lines().next().unwrap_or_default());
        let commit = match (self.commit, &tip) {
            (CommitMode::Auto, Some(tip)) => Some((tip.to_string(), subject)),
            _ => None,
        };
        let old = self.tip_commit(job.tip.as_ref()).ok().filter(|_| tip.is_some());
        let events = old.and_then(|old| self.runner.advance_baseline(job.node, &old.to_string()));
        IntegrationResult::Done {
            tip: tip.map(|tip| tip.to_string()),
            commit,
            events: events.into_iter().collect(),
        }
    }

    /// Fast-forwards the user's branch to the tip, with `--commit auto`.
    ///
    /// The work is integrated whether or not this succeeds: what is in the way is noted, and it is
    /// tried again at the end.
    pub(super) fn fast_forward(&self, tip: &Sha, reporter: &Reporter) {
        if self.commit != CommitMode::Auto {
            return;
        }
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.repo.land_ff(self.branch.as_deref(), &landed.0, tip);
        let answer = answer.map_or_else(
            |error| Landed::Kept(error.to_string()),
            |answer| Landed::of(answer, self.branch.as_deref()),
        );
        match answer {
            Landed::There => *landed = (tip.clone(), None),
            kept => {
                if landed.1.is_none() {
                    let text = kept.note(&tip_ref(self.run));
                    reporter.note(Note::Message(SafeText::new(text)));
                }
                landed.1 = Some(kept);
            }
        }
    }
}

/// The evidence of a conflict, for the next attempt.
fn conflict_evidence(text: String) -> Evidence {
    let cut = text.chars().take(HUNKS_CHARS_MAX).collect::<String>();
    Evidence { rule: CONFLICT.to_owned(), line: None, text: SafeText::new(cut), stream: None }
}
