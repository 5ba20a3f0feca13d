//! What is said about a phase that failed: the autobuild seed's texts.
//!
//! A template takes what is known and makes a [`Notice`](crate::Notice). It must not decide whether a phase is tried again.

mod batch;
mod captured;
mod fresh;
mod halt;
mod page;
mod retry;

pub use batch::{Batch, BatchPhase, BatchState, batch_multiple_failures, batch_partial_failure, batch_retry};
pub use fresh::{FreshStart, fresh_start};
pub use halt::{
    CircularDependency, ConflictFile, DependencyMissing, FileConflict, LineRange, PlanInvalid,
    circular_dependency, dependency_missing, file_conflict, plan_invalid,
};
pub use page::{PhaseError, phase_error};
pub use retry::{PhaseRetry, phase_retry};

use crate::notice::Words;
use backstop_core::{Fault, SafeText};

/// A phase of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phase {
    /// Its id, such as `2A`.
    pub id: SafeText,
    /// Its title, where it has one.
    pub title: SafeText,
}

impl Phase {
    /// `2A (Backend API)`.
    fn words(&self) -> Words {
        match self.title.raw().trim().is_empty() {
            true => Words::outside(&self.id),
            false => Words::outside(&self.id).and(" (").and_outside(&self.title).and(")"),
        }
    }
}

/// What a fault says happened: its cause, else its summary.
fn message(fault: &Fault) -> SafeText {
    match &fault.cause {
        Some(cause) if !cause.raw().trim().is_empty() => cause.clone(),
        _ => SafeText::new(crate::summary(fault)),
    }
}
