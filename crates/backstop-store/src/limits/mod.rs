//! Shared limits: guards, breakers, budgets, experience, and results that can be used again.
//!
//! One database a user, because a rate limit belongs to an account. Many processes ask at once:
//! every question that changes something is one `BEGIN IMMEDIATE` transaction or one statement, so
//! no update is lost. It must not decide: what an answer means, when a breaker opens and how long
//! somebody waits are the core's. Losing this database loses knowledge, no work.

mod breaker;
mod budget;
mod experience;
mod guard;
mod results;

pub use breaker::BreakerState;
pub use budget::{Budget, BudgetState, Per, Spending};
pub use experience::SignatureHistory;
pub use guard::GuardState;
pub use results::KeptResult;

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of shared limits.
    LimitStore,
    limits_file,
    schema::LIMITS
);
