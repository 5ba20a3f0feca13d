//! The outbox: what people are to be told, kept until it was said.
//!
//! One database a user, because one sender delivers for all projects. What is the same trouble, told to the same place, is
//! one row with a count; a row that is being sent is not added to. It must not decide when something is said, nor send
//! anything: a sender asks for what is queued, takes a note, and tells what came of it. A note that was taken and never
//! finished is queued again by the next sender, so that everything is said at least once.

mod note;
mod queue;

pub use note::{Added, Delivered, NewNote, Note, NoteState, SentNote};

use crate::db::Db;
use crate::{Clock, StateFolder, StoreError, schema};
use backstop_core::{Redactor, Timestamp};
use std::path::Path;
use std::sync::Arc;

/// The database of what is to be told.
pub struct Outbox {
    db: Db,
    clock: Clock,
    redactor: Arc<Redactor>,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("file", &self.db.file()).finish_non_exhaustive()
    }
}

impl Outbox {
    /// Opens it, and makes it where it is missing.
    pub fn open(folder: &StateFolder) -> Result<Self, StoreError> {
        let db = Db::open(folder, folder.outbox_file(), &schema::OUTBOX, &|_| Ok(()))?;
        Ok(Self::of(folder, db))
    }

    /// Opens it if there is one.
    pub fn open_existing(folder: &StateFolder) -> Result<Option<Self>, StoreError> {
        let db = Db::open_existing(folder, folder.outbox_file(), &schema::OUTBOX, &|_| Ok(()))?;
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

    /// The time, from the folder's clock.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }
}
