//! What hooks remember between two calls: how often a task has failed, how often in a row a session
//! met the same fault, which turn was held.
//!
//! One database a user, like the shared limits: losing it loses counts, no work. Many hooks run at
//! once: every question that changes something is one `BEGIN IMMEDIATE` transaction or one
//! statement. It must not decide whether anything is tried again.

mod session;
mod task;

pub use task::{TaskRecord, TaskState, TaskStatus};

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of what hooks remember.
    HookStore,
    hooks_file,
    schema::HOOKS
);
