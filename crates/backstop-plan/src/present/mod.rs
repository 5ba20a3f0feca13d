//! Presents a run: a row for each phase, a line for each change, the summary at the end.
//!
//! Pure: the record and the time go in, values that `backstop-report` renders come out.

mod changes;
mod details;
mod dry_run;
mod endings;
mod reading;
mod rows;
mod status;
mod waves;

pub use changes::change;
pub use details::details;
pub use dry_run::forecast;
pub use endings::{Facts, completion, halt, wait_sum};
pub use reading::{done_phases, reading};
pub use rows::{Live, rows, time_left};
pub use status::status;
pub use waves::waves;
