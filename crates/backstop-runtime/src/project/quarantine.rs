//! Setting damaged stores aside when a person asks for it.

use super::{Project, ProjectError};
use backstop_store::{HookStore, Journal, Outbox, StoreError, UserStore};
use std::path::PathBuf;

impl Project {
    /// Sets aside the stores that are damaged or of a newer version; what is whole stays where it
    /// is. Gives where they are now. Nothing is deleted.
    pub fn quarantine_damaged(&self) -> Result<Vec<PathBuf>, ProjectError> {
        let folder = self.folder()?;
        let mut moved = Vec::new();
        if is_damaged(
            Journal::open_existing(folder, &self.root).and_then(|j| j.map_or(Ok(()), |j| j.check())),
        ) {
            moved.extend(folder.quarantine(&self.root)?);
        }
        if is_damaged(UserStore::open_existing(folder).and_then(|u| u.map_or(Ok(()), |u| u.check()))) {
            moved.extend(folder.quarantine_user()?);
        }
        if is_damaged(HookStore::open_existing(folder).and_then(|h| h.map_or(Ok(()), |h| h.check()))) {
            moved.extend(folder.quarantine_hooks()?);
        }
        if is_damaged(Outbox::open_existing(folder).and_then(|o| o.map_or(Ok(()), |o| o.check()))) {
            moved.extend(folder.quarantine_outbox()?);
        }
        Ok(moved)
    }
}

fn is_damaged(checked: Result<(), StoreError>) -> bool {
    matches!(checked, Err(StoreError::Corrupt { .. } | StoreError::Newer { .. }))
}
