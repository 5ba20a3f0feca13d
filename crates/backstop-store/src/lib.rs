//! The store: everything that must survive the process. The journal of every run, child processes
//! left behind by a crash, deferred work, trust, shared limits, the outbox.
//!
//! [`StateFolder`] is the user's state folder, private to its user. [`Journal`] is the database of
//! one project, and [`RunJournal`] records the events of one run in it: what it has recorded
//! survives kill -9 of the process. Many processes may write at once; every write is one statement
//! or one `BEGIN IMMEDIATE` transaction.
//!
//! This crate must not decide anything, print, or read the environment or the clock: folder, time
//! and secrets come from the caller. Everything goes through the redactor before it is stored, no
//! name from outside becomes a part of a path, and a damaged database is reported and left as it
//! is.
//!
//! ```
//! use backstop_core::{EventKind, Outcome, Redactor, Timestamp};
//! use backstop_store::{ProcessId, Journal, RunHeader, StateFolder};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temp = tempfile::tempdir()?;
//! # let (state, project) = (temp.path().join("state"), temp.path());
//! let clock = Arc::new(|| Timestamp::from_millis(1_700_000_000_000));
//! let folder = StateFolder::open(&state, clock, Arc::new(Redactor::default()))?;
//! let journal = Journal::open(&folder, project)?;
//!
//! let header = RunHeader::new("exec", ProcessId { pid: 7, start: 1 }, 0x7f3a);
//! let started =
//!     EventKind::RunStarted { operation: "npm ci".into(), folder: None, profile: None, parent: None };
//! let run = journal.begin(header, vec![started])?;
//! run.append(vec![EventKind::RunEnded {
//!     outcome: Outcome::Done,
//!     reason: None,
//!     attempts: 1,
//!     duration_ms: 12,
//!     exit: Some(0),
//!     next: None,
//! }])?;
//! assert_eq!(journal.load(run.id())?.len(), 2);
//! # Ok(()) }
//! ```

mod begin;
mod counted;
mod db;
mod deferred;
mod drift;
mod error;
mod filesystem;
mod fold;
mod folder;
mod freeze;
mod hold;
mod hooks;
mod journal;
mod key;
mod lessons;
mod limits;
mod log;
mod lost;
mod masked;
mod migrate;
mod outbox;
mod outputs;
mod project;
mod read;
mod retention;
mod row;
mod run;
mod schema;
mod shared;
mod stats;
mod successes;
mod summary;
mod user;

// What the store reads and writes is defined in the core, so that others can show it.
pub use backstop_core::breaker::BreakerState;
pub use backstop_core::budget::{Budget, BudgetState, Per};
pub use backstop_core::deferred::{Deferred, DeferredId, DeferredIdError, DeferredWork};
pub use backstop_core::drift::{Drift, SPIKE_PAST_MIN, SPIKE_UNKNOWN_MIN, UnknownGroup};
pub use backstop_core::guard::GuardState;
pub use backstop_core::{
    Cleaned, ProcessId, RunState, RunSummary, SignatureHistory, TaskRecord, TaskState, TaskStatus,
};
pub use begin::RunHeader;
pub use db::{CommitHook, CommitPoint};
pub use error::StoreError;
pub use folder::{BootClock, Clock, StateFolder};
pub use freeze::Freeze;
pub use hold::{Held, Hold, Holder};
pub use hooks::HookStore;
pub use journal::Journal;
pub use key::{KeyError, ProjectKey};
pub use lessons::Lesson;
pub use limits::{KeptResult, LimitStore, Spending};
pub use lost::{Child, LostRun};
pub use masked::masked;
pub use outbox::{Added, Delivered, NewNote, Note, NoteState, Outbox, SentNote};
pub use project::Project;
pub use read::{EventFilter, RunFilter};
pub use retention::Retention;
pub use run::RunJournal;
pub use stats::{StatsFilter, operation_label};
pub use user::{Nested, Trusted, UserStore};
