//! What hooks remember between two calls: how often a task has failed, how often in a row a session met the same fault, which
//! turn was held.
//!
//! One database a user, like the shared limits: losing it loses counts, no work. Many hooks run at once: every question
//! that changes something is one `BEGIN IMMEDIATE` transaction or one statement. It must not decide whether anything is
//! tried again.

mod session;
mod task;

pub use task::{TaskRecord, TaskState, TaskStatus};

use crate::db::Db;
use crate::{Clock, StateFolder, StoreError, schema};
use backstop_core::{Redactor, Timestamp};
use std::path::Path;
use std::sync::Arc;

/// The database of what hooks remember.
pub struct HookStore {
    db: Db,
    clock: Clock,
    redactor: Arc<Redactor>,
}

impl std::fmt::Debug for HookStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookStore").field("file", &self.db.file()).finish_non_exhaustive()
    }
}

impl HookStore {
    /// Opens it, and makes it where it is missing.
    pub fn open(folder: &StateFolder) -> Result<Self, StoreError> {
        let db = Db::open(folder, folder.hooks_file(), &schema::HOOKS, &|_| Ok(()))?;
        Ok(Self::of(folder, db))
    }

    /// Opens it if there is one.
    pub fn open_existing(folder: &StateFolder) -> Result<Option<Self>, StoreError> {
        let db = Db::open_existing(folder, folder.hooks_file(), &schema::HOOKS, &|_| Ok(()))?;
        Ok(db.map(|db| Self::of(folder, db)))
    }

    fn of(folder: &StateFolder, db: Db) -> Self {
        Self { db, clock: Clock::clone(&folder.clock), redactor: Arc::clone(&folder.redactor) }
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        self.db.file()
    }

    /// Reads all of it and says what is wrong with it, if anything is.
    pub fn check(&self) -> Result<(), StoreError> {
        self.db.check()
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}
