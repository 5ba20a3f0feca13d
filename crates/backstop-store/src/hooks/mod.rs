//! What hooks remember between two calls: how often a task has failed, how often in a row a session
//! met the same fault, which turn was held.
//!
//! One database per user, like the shared limits: losing it loses counts, but no work. Many hooks
//! run at once: every change is one `BEGIN IMMEDIATE` transaction or one statement. It must not
//! decide whether anything is retried.

mod session;
mod task;

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of hooks.
    HookStore,
    hooks_file,
    schema::HOOKS
);
