//! A run in the words of the reports: rows while it goes on, changes line by line, and how it ended.
//!
//! Pure: what was recorded and the time go in, values for `backstop-report` come out.

mod changes;
mod endings;
mod rows;

pub use changes::change;
pub use endings::{Facts, completion, halt};
pub use rows::{Live, rows, time_left};
