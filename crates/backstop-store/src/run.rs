//! The writer of one run's events.

use crate::row;
use crate::summary::RunRow;
use crate::{Child, Journal, ProcessId, StoreError};
use backstop_core::{Event, EventKind, Record, RecordError, RunId, SafeText};
use rusqlite::params;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records the events of one run. It knows the version that it wrote last: if another process has
/// written since, nothing is written and [`StoreError::Conflict`] is returned.
pub struct RunJournal {
    journal: Journal,
    id: RunId,
    row: Mutex<RunRow>,
}

impl std::fmt::Debug for RunJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunJournal").field("id", &self.id).finish_non_exhaustive()
    }
}

impl RunJournal {
    pub(crate) fn new(journal: Journal, row: RunRow) -> Self {
        Self { journal, id: row.run.id, row: Mutex::new(row) }
    }

    /// Opens an existing run for appending. With the first events that it appends, `process`
    /// becomes the process of the run.
    pub fn resume(journal: &Journal, run: RunId, process: ProcessId) -> Result<Self, StoreError> {
        let mut row = journal
            .row(run)?
            .ok_or_else(|| StoreError::NoSuchRun { run, file: journal.file().to_owned() })?;
        row.run.process = process;
        Ok(Self::new(journal.clone(), row))
    }

    /// The run's id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The journal it is in.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The number of events that this writer knows of: the version that it expects.
    pub fn version(&self) -> u64 {
        self.row().run.events
    }

    /// What is appended next comes after this version, which this writer wrote though that was not
    /// confirmed. Where the run is at another one, nothing changes.
    pub fn continue_from(&self, version: u64) -> Result<(), StoreError> {
        let file = || self.journal.file().to_owned();
        let read = self.journal.row(self.id)?;
        let mut read = read.ok_or_else(|| StoreError::NoSuchRun { run: self.id, file: file() })?;
        let found = read.run.events;
        if found != version {
            return Err(StoreError::Conflict { run: self.id, expected: version, found });
        }
        let mut row = self.row();
        read.run.process = row.run.process;
        *row = read;
        Ok(())
    }

    /// The number of the run in the database.
    pub(crate) fn number(&self) -> i64 {
        self.row().n
    }

    fn row(&self) -> MutexGuard<'_, RunRow> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records events in order, all or none. Returns them as they were stored, with secrets masked.
    pub fn append(&self, kinds: Vec<EventKind>) -> Result<Vec<Event>, StoreError> {
        self.append_if(None, kinds)
    }

    /// Like [`Self::append`], for one who knows the run's version: where the run is at another one,
    /// nothing is written and the answer is [`StoreError::Conflict`].
    pub fn append_at(&self, version: u64, kinds: Vec<EventKind>) -> Result<Vec<Event>, StoreError> {
        self.append_if(Some(version), kinds)
    }

    fn append_if(&self, version: Option<u64>, kinds: Vec<EventKind>) -> Result<Vec<Event>, StoreError> {
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let durable = must_survive_power_loss(&self.row().run.surface, &kinds);
        let masked = self.journal.mask(kinds)?;
        let mut row = self.row();
        let found = row.run.events;
        if let Some(expected) = version.filter(|version| *version != found) {
            return Err(StoreError::Conflict { run: self.id, expected, found });
        }
        let mut next = row.clone();
        // Read under the lock, so that the times of a run's events never go back unless the clock
        // did.
        let at = self.journal.now();
        let events = self.journal.write(durable, |tx| row::append(tx, &mut next, masked, at))?;
        *row = next;
        Ok(events)
    }

    /// Records a process that an attempt has started, so that a later Backstop can end it if this
    /// one dies. Removed when its attempt or the run has ended.
    pub fn child_started(&self, child: Child) -> Result<(), StoreError> {
        let n = self.row().n;
        let operation = child.operation.map(|text| self.journal.mask_text(&text));
        self.journal.write_one(|conn| {
            conn.execute(
                "INSERT INTO children (run, attempt, pid, start, process_group, operation) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    n,
                    child.attempt,
                    child.pid,
                    child.start.cast_signed(),
                    child.group,
                    operation.as_ref().map(SafeText::raw),
                ],
            )
        })?;
        Ok(())
    }
}

/// Whether events must survive a power cut: the intents of plans and campaigns, whose effects
/// cannot be undone.
fn must_survive_power_loss(surface: &str, kinds: &[EventKind]) -> bool {
    matches!(surface, "run" | "campaign")
        && kinds.iter().any(|kind| {
            matches!(
                kind,
                EventKind::AttemptStarted { .. }
                    | EventKind::IntegrationStarted { .. }
                    | EventKind::IntegrationFinished { .. }
                    | EventKind::CommitMade { .. }
            )
        })
}

impl Record for RunJournal {
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        self.append(kinds).map(|_| ()).map_err(|error| RecordError(error.to_string()))
    }
}
