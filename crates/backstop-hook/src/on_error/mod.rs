//! The on-error hook: a task reports its error, and is told what it is and whether it is tried
//! again.
//!
//! [`Report`] is what came in, checked field by field. [`classify`] says what it is; a name of the
//! seeds as its type decides. [`decide`] lays it before the policy as the attempt that it is.
//! [`Answer`] is what goes out, and the events that are recorded before it does. [`handle`] puts it
//! together.

mod answer;
mod decide;
mod events;
mod fault;
mod handle;
mod refusal;
mod report;
mod suggest;

pub use answer::Answer;
pub use decide::{Case, counted_together, decide};
pub use fault::classify;
pub use handle::handle;
pub use refusal::Refusal;
pub use report::{Report, ReportedPlace};
pub use suggest::suggest_command;

use std::time::Duration;

/// Failures of a task count as attempts for so long.
pub const WINDOW: Duration = Duration::from_secs(3600);
/// The states that are recorded: the seed's log events.
pub const STATES: [&str; 3] = ["error_handling_start", "error_diagnostics", "error_handling_complete"];
