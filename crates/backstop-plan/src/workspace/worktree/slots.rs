//! The slots of a run: worktrees that are reused, so that build caches stay warm.

use super::Worktrees;
use backstop_core::Name;
use backstop_work::git::{CommitTrouble, Committed, GitError, Repo, Reset, Saved, Sha, Slot, attempt_ref};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

/// A slot, and the commit that holds all of its content, where it was saved.
pub(super) struct SlotState {
    pub(super) slot: Slot,
    pub(super) number: usize,
    pub(super) saved: Option<Sha>,
    /// What its files are, as far as that is known without looking.
    pub(super) content: Content,
}

/// What is in a slot. Nobody works there but who took it, and resets it first.
#[derive(Debug, Default)]
pub(super) enum Content {
    /// Somebody may have worked there.
    #[default]
    Unknown,
    /// The commit that it is at, and nothing else.
    Clean,
    /// This tree, which was saved.
    Saved(Sha),
}

/// The file in a slot's git folder that says which attempt works in it.
const ATTEMPT_FILE: &str = "backstop-attempt";

impl SlotState {
    /// Puts the slot at a commit, for whoever works there next.
    pub(super) fn reset_to(&mut self, at: &Sha) -> Result<Reset, GitError> {
        let reset = match std::mem::take(&mut self.content) {
            Content::Clean => self.slot.move_untouched(at).map(|()| Reset::default())?,
            Content::Unknown | Content::Saved(_) => self.slot.reset_to(at, self.saved.as_ref())?,
        };
        self.saved = None;
        Ok(reset)
    }

    /// Commits a tree here; afterwards the slot is at that commit.
    pub(super) fn commit(
        &mut self,
        repo: &Repo,
        tree: &Sha,
        parent: &Sha,
        message: &str,
    ) -> Result<Committed, CommitTrouble> {
        let made = match std::mem::take(&mut self.content) {
            Content::Saved(saved) if saved == *tree => {
                repo.commit_saved_in(&self.slot, tree, parent, message)
            }
            _ => repo.commit_in(&self.slot, tree, parent, message),
        }?;
        self.saved = Some(made.sha.clone());
        self.content = Content::Clean;
        Ok(made)
    }

    /// Notes that everything here was saved.
    pub(super) fn set_saved(&mut self, saved: &Saved) {
        self.saved = Some(saved.sha.clone());
        self.content = Content::Saved(saved.tree.clone());
    }

    /// Notes which attempt works here, so that its work can be told from others' after a crash.
    pub(super) fn note_attempt(&self, phase: &Name, attempt: u32) {
        // Without it the work is saved all the same, under the slot's name.
        let _ = std::fs::write(self.slot.git_dir().join(ATTEMPT_FILE), format!("{phase} {attempt}"));
    }
}

/// The attempt that worked in a slot last.
pub(crate) fn noted_attempt(slot: &Slot) -> Option<(Name, u32)> {
    let text = std::fs::read_to_string(slot.git_dir().join(ATTEMPT_FILE)).ok()?;
    let (phase, attempt) = text.split_once(' ')?;
    Some((phase.parse().ok()?, attempt.parse().ok()?))
}

/// The folder of a slot, below that of all slots of a run.
pub(crate) fn slot_folder(slots: &Path, number: usize) -> PathBuf {
    slots.join(format!("slot-{number}"))
}

#[derive(Default)]
pub(super) struct Slots {
    pub(super) free: Vec<SlotState>,
    /// Slots of phases whose work is not integrated yet, by phase.
    pub(super) held: BTreeMap<usize, SlotState>,
    pub(super) made: usize,
}

impl Worktrees<'_> {
    pub(super) fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free slot, or creates one.
    pub(super) fn take_free(&self) -> Result<SlotState, GitError> {
        let number = {
            let mut slots = self.slots();
            if let Some(slot_state) = slots.free.pop() {
                return Ok(slot_state);
            }
            slots.made += 1;
            slots.made
        };
        self.open(number)
    }

    /// Takes the slot of this folder, where it is free, else any other. Slots that a killed process
    /// left are opened first: what is in them is saved as the work of the attempt that was cut off.
    pub(super) fn take_for(&self, folder: Option<&Path>) -> Result<SlotState, GitError> {
        loop {
            let number = {
                let mut slots = self.slots();
                if !self.slot_path(slots.made + 1).exists() {
                    break;
                }
                slots.made += 1;
                slots.made
            };
            let left = self.open(number)?;
            self.give_back(left);
        }
        let mut slots = self.slots();
        let at = slots.free.iter().position(|free| Some(free.slot.path()) == folder);
        if let Some(at) = at {
            return Ok(slots.free.remove(at));
        }
        drop(slots);
        self.take_free()
    }

    pub(super) fn slot_path(&self, number: usize) -> PathBuf {
        slot_folder(&self.folder, number)
    }

    pub(super) fn open(&self, number: usize) -> Result<SlotState, GitError> {
        let path = self.slot_path(number);
        let mut slot = self.add_slot(&path)?;
        slot.exclude(&self.exclude);
        let content = if slot.was_there() { Content::Unknown } else { Content::Clean };
        let mut slot_state = SlotState { slot, number, saved: None, content };
        if slot_state.slot.was_there() {
            // A killed process left it: its content is saved before anything is done to it.
            let attempt = noted_attempt(&slot_state.slot).map(|(phase, n)| attempt_ref(self.run, &phase, n));
            let attempt = attempt.filter(|name| matches!(self.repo.read_ref(name), Ok(None)));
            let name = match attempt {
                Some(name) => name,
                None => {
                    format!("refs/backstop/{}/%slot-{number}/{}", self.run, self.times_left_in_use(number)?)
                }
            };
            let at = slot_state.slot.at()?;
            slot_state.saved = Some(slot_state.slot.save(&at, &name, "what a killed run left")?.sha);
        }
        Ok(slot_state)
    }

    /// Makes a slot. What is in its place and belongs to another repository, as after a clone was
    /// made anew, is moved aside.
    fn add_slot(&self, path: &Path) -> Result<Slot, GitError> {
        let reason = format!("backstop {}", self.run);
        match self.repo.add_slot(path, &self.base, &reason) {
            Err(GitError::NotOurs { .. }) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let free = (1..1000).map(|n| path.with_file_name(format!("{name}.left-{n}")));
                let aside = free.into_iter().find(|aside| aside.symlink_metadata().is_err());
                let aside = aside.ok_or_else(|| GitError::NotOurs { path: path.to_owned() })?;
                std::fs::rename(path, aside).map_err(|_| GitError::NotOurs { path: path.to_owned() })?;
                self.repo.add_slot(path, &self.base, &reason)
            }
            made => made,
        }
    }

    /// How often the content that a killed process left in this slot was saved.
    pub(super) fn times_left_in_use(&self, number: usize) -> Result<usize, GitError> {
        let prefix = format!("refs/backstop/{}/%slot-{number}/", self.run);
        Ok(self.repo.runs_refs(self.run)?.iter().filter(|(name, _)| name.starts_with(&prefix)).count())
    }

    /// Takes the slot of a phase whose work is not integrated yet. A function of its own, so that
    /// the lock is released.
    pub(super) fn take_held(&self, node: usize) -> Option<SlotState> {
        self.slots().held.remove(&node)
    }

    pub(super) fn give_back(&self, slot_state: SlotState) {
        let mut slots = self.slots();
        slots.free.push(slot_state);
        // The lowest free slot is used first: its caches are warm, and the order does not depend on
        // time.
        slots.free.sort_by_key(|slot_state| std::cmp::Reverse(slot_state.number));
    }

    /// Removes the slots of a complete run. A slot that is not clean or not saved stays.
    pub fn remove_slots(&self) {
        let (mut slot_states, made) = {
            let mut slots = self.slots();
            (std::mem::take(&mut slots.free), slots.made)
        };
        // Slots that a killed process created and this one did not use.
        let left = (made + 1..).take_while(|number| self.slot_path(*number).exists());
        slot_states.extend(left.filter_map(|number| self.open(number).ok()));
        for mut slot_state in slot_states {
            let _ = slot_state.reset_to(&self.base);
            let _ = self.repo.remove_slot(slot_state.slot);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}
