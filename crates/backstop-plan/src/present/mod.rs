//! Presents a run: a row for each phase, a line for each change, the summary at the end.
//!
//! Pure: the record and the time go in, values that `backstop-report` renders come out.

mod changes;
mod endings;
mod rows;
mod waves;

pub use changes::change;
pub use endings::{Facts, completion, halt, wait_sum};
pub use rows::{Live, rows, time_left};
pub use waves::waves;
