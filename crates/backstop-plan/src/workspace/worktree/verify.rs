//! What is checked outside of any phase: the tree that the run starts from, and the user's own
//! commits together with the run's work, before that lands. Nothing lands that was not verified as
//! it lands.

use super::Worktrees;
use super::slots::SlotState;
use crate::workspace::baseline::{Standing, base_gate};
use crate::workspace::faults::git_fault;
use crate::workspace::phase_runner::AttemptDir;
use backstop_core::{EventKind, Fault, Reason, SafeText};
use backstop_exec::Stop;
use backstop_runtime::host::{Note, Reporter};
use backstop_work::gate::{Checked, Compared, Gate, compare};
use backstop_work::git::{Conflict, GitError, Merged, Sha};

/// The message of the commit that brings the run's work and the user's own commits together.
const MERGE_MESSAGE: &str = "Merge what was committed meanwhile";
/// What such a merge is called in the record.
pub(super) const MEANWHILE: &str = "what was committed meanwhile";

/// Where the user's own commits are, beside a commit that has them and the run's work.
enum UsersSide {
    /// They were merged by Backstop, and are this commit.
    Alone(Sha),
    /// They are on top of the run's work.
    OnTop,
    /// The user has merged the run's work.
    Merged {
        /// The merge.
        merge: Sha,
        /// What the run's work was merged with.
        other: Sha,
    },
}

impl Worktrees<'_> {
    /// Tries the gates on the tree that the run starts from, and brings the run's work together
    /// with what the user has committed since.
    pub(super) fn check_start(&self, stop: &Stop, reporter: &Reporter) -> Result<Vec<EventKind>, Box<Fault>> {
        let mut events = Vec::new();
        if !self.runner.to_come.is_empty() && !self.runner.gates_to_come().is_empty() {
            let base = self.first_base.clone();
            events.extend(
                self.in_slot_at(&base, stop, reporter, |dir, tree| self.runner.check_base(dir, Some(tree)))?,
            );
        }
        let Some(tip) = &self.meet else { return Ok(events) };
        let known = self.runner.baselines().now().clone();
        if let Some(new) = self.bring_together(tip, &self.base, &self.runner.to_come, stop, reporter)? {
            events.push(EventKind::IntegrationFinished {
                operation: SafeText::new(MEANWHILE),
                tip: new.to_string(),
            });
        }
        let now = self.runner.baselines().now().clone();
        if now != known {
            events.push(EventKind::BaseChecked { tree: None, gates: now.gates().to_vec() });
        }
        Ok(events)
    }

    /// Brings the run's tip and what the user has committed since together, and checks the result.
    /// Gives the new tip, where it moves. `to_come` are the phases that are not complete.
    pub(super) fn bring_together(
        &self,
        tip: &Sha,
        head: &Sha,
        to_come: &[usize],
        stop: &Stop,
        reporter: &Reporter,
    ) -> Result<Option<Sha>, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        if self.repo.contains(tip, head).map_err(fault)? {
            return Ok(None);
        }
        if self.repo.contains(head, tip).map_err(fault)? {
            let users = match self.repo.merge_of(tip, head).map_err(fault)? {
                Some((merge, other)) if self.has_work() => UsersSide::Merged { merge, other },
                _ => UsersSide::OnTop,
            };
            self.verify_together(head, &users, to_come, stop, reporter)?;
            return Ok(Some(head.clone()));
        }
        let tree = match self.repo.merge(head, tip).map_err(fault)? {
            Merged::Clean(tree) => tree,
            Merged::Conflicted(conflicts) => return Err(Box::new(diverged(tip, &conflicts))),
        };
        let merged = self.repo.commit_tree(&tree, &[head, tip], MERGE_MESSAGE).map_err(fault)?;
        let users = UsersSide::Alone(head.clone());
        self.verify_together(&merged, &users, to_come, stop, reporter)?;
        Ok(Some(merged))
    }

    /// Runs the gates on a commit that has the run's work and the user's commits. What fails there
    /// and not on the user's commits alone is a conflict; what fails on those too is the user's,
    /// and phases are not blamed for it.
    fn verify_together(
        &self,
        together: &Sha,
        users: &UsersSide,
        to_come: &[usize],
        stop: &Stop,
        reporter: &Reporter,
    ) -> Result<(), Box<Fault>> {
        let gates = self.gates_of_a_merge(to_come);
        if gates.is_empty() {
            return Ok(());
        }
        reporter.note(Note::Message(SafeText::new(format!(
            "checking {MEANWHILE}, together with the run's work"
        ))));
        let check = |commit: &Sha, title: &str, gates: &[(usize, Gate)]| {
            self.in_slot_at(commit, stop, reporter, |dir, tree| {
                self.runner.check_tree(dir, title, Some(tree), gates)
            })
        };
        let mut failed = check(together, "gates on the merge with your commits", &gates)?;
        {
            let mut baselines = self.runner.baselines();
            let baseline = baselines.now();
            failed.retain_mut(|(gate, checked)| {
                let found = base_gate(gate, checked);
                let counts = !checked.passed && baseline.judge(gate, checked) == Standing::Counts;
                baseline.mend(&found);
                counts
            });
        }
        for (gate, checked) in &failed {
            let node = gates.iter().find(|(_, known)| known == gate).map_or(0, |(node, _)| *node);
            let gate_alone = [(node, gate.clone())];
            let fails_on = |commit: &Sha, title: &str| -> Result<bool, Box<Fault>> {
                let found = check(commit, title, &gate_alone)?;
                Ok(found.iter().any(|(_, alone)| fails_as_much(alone, checked)))
            };
            let is_users = match users {
                UsersSide::Alone(head) => fails_on(head, "gates on your commits alone")?,
                UsersSide::OnTop => true,
                UsersSide::Merged { merge, other } => {
                    fails_on(other, "gates on your commits alone")?
                        || (merge != together && !fails(&check(merge, "gates on your merge", &gate_alone)?))
                }
            };
            if !is_users {
                return Err(Box::new(broken_together(gate, checked, users)));
            }
            reporter.note(Note::Message(SafeText::new(format!(
                "gate {} fails on your own commits: phases are judged by what they add",
                gate.name
            ))));
            self.runner.baselines().now().set(base_gate(gate, checked));
        }
        Ok(())
    }

    /// Whether the work of a phase came in.
    fn has_work(&self) -> bool {
        self.runner.recorder.events().iter().any(|event| match &event.kind {
            EventKind::IntegrationFinished { operation, .. } => operation.raw() != MEANWHILE,
            _ => false,
        })
    }

    /// The gates that a merge must pass: those of every phase, and those of a phase's own where
    /// that phase is done.
    fn gates_of_a_merge(&self, to_come: &[usize]) -> Vec<(usize, Gate)> {
        let mut all: Vec<(usize, Gate)> = Vec::new();
        for (node, equipment) in self.runner.equipment.iter().enumerate() {
            for gate in &equipment.gates {
                let counts = !gate.is_a_phases_own() || !to_come.contains(&node);
                if counts
                    && !all.iter().any(|(_, known)| known.name == gate.name && known.check == gate.check)
                {
                    all.push((node, gate.clone()));
                }
            }
        }
        all
    }

    /// Does something in a slot that is put at a commit. What it leaves there is saved.
    pub(super) fn in_slot_at<T>(
        &self,
        commit: &Sha,
        stop: &Stop,
        reporter: &Reporter,
        work: impl FnOnce(&AttemptDir<'_>, &str) -> Result<T, Box<Fault>>,
    ) -> Result<T, Box<Fault>> {
        let mut slot_state = self.take_free().map_err(|error| git_fault(&error))?;
        let done = self.in_slot(&mut slot_state, commit, stop, reporter, work);
        if done.is_ok() {
            self.give_back(slot_state);
        }
        done
    }

    fn in_slot<T>(
        &self,
        slot_state: &mut SlotState,
        commit: &Sha,
        stop: &Stop,
        reporter: &Reporter,
        work: impl FnOnce(&AttemptDir<'_>, &str) -> Result<T, Box<Fault>>,
    ) -> Result<T, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        slot_state.reset_to(commit).map_err(fault)?;
        slot_state.slot.provide(self.repo.root(), &self.link, &self.copy).map_err(fault)?;
        let tree = self.repo.tree_of(commit).map_err(fault)?;
        let done = {
            let dir = AttemptDir {
                tip: None,
                node: 0,
                attempt: 0,
                folder: slot_state.slot.path(),
                slot: slot_state.number,
                previous: None,
                moved_since: false,
                has_earlier_work: false,
                stop,
                reporter,
            };
            self.set_up(slot_state, &dir).and_then(|()| work(&dir, &tree.to_string()))
        };
        // Gates may write files; nothing that a slot holds is thrown away unsaved.
        let name = format!("refs/backstop/{}/%checked-{}", self.run, slot_state.number);
        let saved = slot_state.slot.save(commit, &name, "a tree, after its gates").map_err(fault)?;
        slot_state.set_saved(&saved);
        done
    }
}

/// The user's commits and the run's work cannot be merged.
fn diverged(tip: &Sha, conflicts: &[Conflict]) -> Fault {
    let files: Vec<SafeText> =
        conflicts.iter().map(|conflict| SafeText::new(conflict.path.to_string_lossy())).collect();
    let names: Vec<String> = files.iter().take(3).map(|file| file.line(200)).collect();
    let mut fault = Fault::new(Reason::FileConflict);
    fault.cause = Some(SafeText::new(format!(
        "your branch and the run's work have changed the same lines of {}",
        names.join(", ")
    )));
    fault.facts.files = files;
    fault.suggested_action = SafeText::new(format!(
        "merge the run's work into your branch, `git merge {tip}`, commit, and run the same command again"
    ));
    fault
}

/// Whether a gate fails on the user's commits alone as it does together with the run's work, or
/// worse, or in a way that cannot be told apart.
fn fails_as_much(alone: &Checked, together: &Checked) -> bool {
    let known = alone.failures.as_deref().unwrap_or_default();
    !alone.passed && !matches!(compare(known, together.failures.as_deref()), Compared::Worse(_))
}

fn fails(checks: &[(Gate, Checked)]) -> bool {
    checks.iter().any(|(_, checked)| !checked.passed)
}

/// The user's commits and the run's work pass a gate alone and fail it together.
fn broken_together(gate: &Gate, together: &Checked, users: &UsersSide) -> Fault {
    let inner = together.fault.clone().unwrap_or_else(|| Fault::new(Reason::Unknown));
    let cause = inner.cause.as_ref().map_or_else(|| inner.reason.code().to_owned(), |cause| cause.line(200));
    let (on, shows) = match users {
        UsersSide::Merged { merge, .. } => {
            (format!("your merge of the two, {}", merge.short()), "what fails")
        }
        _ => ("both together".to_owned(), "it on the merge"),
    };
    let mut fault = Fault::new(Reason::FileConflict);
    fault.cause = Some(SafeText::new(format!(
        "gate {} passes on your commits and on the run's work, and fails on {on}: {cause}",
        gate.name
    )));
    fault.facts = inner.facts;
    fault.suggested_action = SafeText::new(format!(
        "put right on your branch what the two disagree about (`{}` shows {shows}), commit, and run the \
         same command again",
        gate.check.shown()
    ));
    fault
}
