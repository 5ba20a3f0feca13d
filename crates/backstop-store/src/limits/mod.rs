//! Shared limits: guards, breakers, budgets, experience, and results that can be used again.
//!
//! One database a user, because a rate limit belongs to an account. Many processes ask at once: every question that
//! changes something is one `BEGIN IMMEDIATE` transaction or one statement, so no update is lost. It must not decide: what
//! an answer means, when a breaker opens and how long somebody waits are the core's. Losing this database loses
//! knowledge, no work.

mod breaker;
mod budget;
mod experience;
mod guard;
mod results;

pub use breaker::BreakerState;
pub use budget::{Budget, BudgetState, Per, Spending};
pub use experience::Experience;
pub use guard::GuardState;
pub use results::KeptResult;

use crate::db::Db;
use crate::{Clock, StateFolder, StoreError, schema};
use backstop_core::{Redactor, Timestamp};
use std::path::Path;
use std::sync::Arc;

/// The database of shared limits.
pub struct LimitStore {
    db: Db,
    clock: Clock,
    redactor: Arc<Redactor>,
}

impl std::fmt::Debug for LimitStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitStore").field("file", &self.db.file()).finish_non_exhaustive()
    }
}

impl LimitStore {
    /// Opens it, and makes it where it is missing.
    pub fn open(folder: &StateFolder) -> Result<Self, StoreError> {
        let db = Db::open(folder, folder.limits_file(), &schema::LIMITS, &|_| Ok(()))?;
        Ok(Self::of(folder, db))
    }

    /// Opens it if there is one.
    pub fn open_existing(folder: &StateFolder) -> Result<Option<Self>, StoreError> {
        let db = Db::open_existing(folder, folder.limits_file(), &schema::LIMITS, &|_| Ok(()))?;
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
