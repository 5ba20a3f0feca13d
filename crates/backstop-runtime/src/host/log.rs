//! Where the host records: an append-only log of one run's events, with a version.

use crate::recorder::Recorder;
use backstop_core::{Event, EventKind, Reason, RunId};
use backstop_store::{Journal, StoreError};

/// The log of one run. A writer names the version that it knows: where somebody else has written
/// since, nothing is written. The version is the number of events, which is the `seq` of the last
/// one.
pub trait RunLog: Sync {
    /// Records these events in order, all or none, if the log is at `expected_version`. Returns
    /// them as they were stored: secrets are masked. Once this has returned, they survive the death
    /// of the process.
    fn append(&self, expected_version: u64, kinds: Vec<EventKind>) -> Result<Vec<Event>, RunLogError>;

    /// All events of the run, oldest first.
    fn load(&self) -> Result<Vec<Event>, RunLogError>;

    /// What is appended next comes after this version: events that this writer wrote, though that
    /// was not confirmed, are on record.
    fn continue_from(&self, version: u64) -> Result<(), RunLogError>;
}

/// Why a run's log could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunLogError {
    /// Somebody else wrote to the run since it was read. Nothing was written.
    #[error(
        "{run} was written by another process: expected version {expected}, found {found}; nothing was written"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The version that the writer knew.
        expected: u64,
        /// The version that is there.
        found: u64,
        /// What to type next.
        hint: String,
    },
    /// The log cannot be used: the disk is full, the file is damaged, the store cannot be reached.
    #[error("{what}")]
    Unavailable {
        /// The reason, of the taxonomy.
        reason: Reason,
        /// What happened, and where.
        what: String,
        /// What to type next.
        hint: String,
    },
}

impl RunLogError {
    /// What to type next.
    pub fn hint(&self) -> &str {
        match self {
            RunLogError::Conflict { hint, .. } | RunLogError::Unavailable { hint, .. } => hint,
        }
    }
}

impl From<StoreError> for RunLogError {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        match error {
            StoreError::Conflict { run, expected, found } => Self::Conflict { run, expected, found, hint },
            error => Self::Unavailable { reason: reason(&error), what: error.to_string(), hint },
        }
    }
}

/// What keeps a store from being used, in the words of the taxonomy.
fn reason(error: &StoreError) -> Reason {
    match error {
        StoreError::Busy { .. } => Reason::ResourceContention,
        StoreError::Full { .. } => Reason::DiskFull,
        StoreError::ReadOnly { .. } | StoreError::NotOwned { .. } => Reason::PermissionDenied,
        _ => Reason::StateInvalid,
    }
}

/// A journal whose file was removed takes events, and nobody will ever read them.
fn check_not_removed(journal: &Journal) -> Result<(), RunLogError> {
    match journal.file().try_exists() {
        Ok(false) => Err(RunLogError::Unavailable {
            reason: Reason::StateInvalid,
            what: format!("{} was removed while this ran", journal.file().display()),
            hint: "what was done so far is in the project and its branches; the same command starts anew"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

impl RunLog for Recorder {
    fn append(&self, expected_version: u64, kinds: Vec<EventKind>) -> Result<Vec<Event>, RunLogError> {
        let found = self.version();
        if found != expected_version {
            let (run, expected) = (self.run(), expected_version);
            return Err(StoreError::Conflict { run, expected, found }.into());
        }
        if let Some(journal) = self.journal().filter(|_| self.is_recorded()) {
            check_not_removed(&journal)?;
        }
        Ok(Recorder::append(self, kinds)?)
    }

    fn load(&self) -> Result<Vec<Event>, RunLogError> {
        Ok(self.recorded()?)
    }

    fn continue_from(&self, version: u64) -> Result<(), RunLogError> {
        Ok(Recorder::continue_from(self, version)?)
    }
}
