//! The slots of a run: worktrees that are used again and kept warm.

use super::Worktrees;
use backstop_work::git::{GitError, Sha, Slot};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

/// A slot, and the commit that holds all that is in it.
pub(super) struct SlotState {
    pub(super) slot: Slot,
    pub(super) number: usize,
    pub(super) saved: Option<Sha>,
}

#[derive(Default)]
pub(super) struct Slots {
    pub(super) free: Vec<SlotState>,
    /// Slots of phases whose work is not in yet.
    pub(super) held: BTreeMap<usize, SlotState>,
    pub(super) made: usize,
}

impl Worktrees<'_> {
    pub(super) fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free slot, or a new one.
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

    pub(super) fn slot_path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("slot-{number}"))
    }

    pub(super) fn open(&self, number: usize) -> Result<SlotState, GitError> {
        let path = self.slot_path(number);
        let mut slot = self.repo.add_slot(&path, &self.base, &format!("backstop {}", self.run))?;
        slot.exclude(&self.exclude);
        let mut slot_state = SlotState { slot, number, saved: None };
        if slot_state.slot.was_there() {
            // A killed Backstop left it as it was: whatever is in it is kept before anything is done to it.
            let name =
                format!("refs/backstop/{}/%slot-{number}/{}", self.run, self.times_left_in_use(number)?);
            let at = slot_state.slot.at()?;
            slot_state.saved = Some(slot_state.slot.save(&at, &name, "what a killed run left")?.sha);
        }
        Ok(slot_state)
    }

    /// How often a slot was found with something in it.
    pub(super) fn times_left_in_use(&self, number: usize) -> Result<usize, GitError> {
        let prefix = format!("refs/backstop/{}/%slot-{number}/", self.run);
        Ok(self.repo.runs_refs(self.run)?.iter().filter(|(name, _)| name.starts_with(&prefix)).count())
    }

    /// The slot of a phase whose work is not in yet. A function of its own: nobody may hold the lock after it.
    pub(super) fn take_held(&self, node: usize) -> Option<SlotState> {
        self.slots().held.remove(&node)
    }

    pub(super) fn give_back(&self, slot_state: SlotState) {
        let mut slots = self.slots();
        slots.free.push(slot_state);
        // The same slot for the same kind of work: warm caches, and an order that does not depend on time.
        slots.free.sort_by_key(|slot_state| std::cmp::Reverse(slot_state.number));
    }

    /// Removes the slots of a run that is complete. What is not clean, or not saved, stays.
    pub fn remove_slots(&self) {
        let (mut slot_states, made) = {
            let mut slots = self.slots();
            (std::mem::take(&mut slots.free), slots.made)
        };
        // Those that a killed Backstop made and this one did not need.
        let left = (made + 1..).take_while(|number| self.slot_path(*number).exists());
        slot_states.extend(left.filter_map(|number| self.open(number).ok()));
        for slot_state in slot_states {
            let _ = slot_state.slot.reset_to(&self.base, slot_state.saved.as_ref());
            let _ = self.repo.remove_slot(slot_state.slot);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}
