//! Shared limits: guards, windows, breakers, budgets, what retries have taught, and cached results.
//!
//! One database per user, because a rate limit belongs to an account. Many processes use it at
//! once: every change is one `BEGIN IMMEDIATE` transaction or one statement, so no update is lost.
//! It must not decide what an answer means, when a breaker opens or how long to wait: the core
//! does. Losing this database loses knowledge, but no work.

mod breaker;
mod budget;
mod experience;
mod guard;
mod results;
mod window;

pub use budget::Spending;
pub use results::KeptResult;

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of shared limits.
    LimitStore,
    limits_file,
    schema::LIMITS
);
