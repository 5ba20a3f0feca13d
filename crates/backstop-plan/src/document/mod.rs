//! Plan documents: Markdown in, a [`Plan`] out, and the marks in the Markdown kept up to date.
//!
//! A plan has an overview table with a row for each phase, and a section for each phase with its
//! tasks:
//!
//! ````text
//! | Phase | Name    | Depends On | Parallel With | Estimate | Status |
//! |-------|---------|------------|---------------|----------|--------|
//! | 1     | Set up  | -          |               | 1h       | ✅     |
//! | 2A    | Backend | Phase 1    | 2B            | 2-3h     | ⬜     |
//! | 2B    | Pages   | Phase 1    | 2A            | 2h       | ⬜     |
//!
//! ### Phase 2A: Backend
//! - [ ] the routes
//!
//! ```backstop
//! files = ["src/api/**"]
//! timeout = "20m"
//! ```
//! ````
//!
//! [`parse`] reads it. [`updated`] changes status cells and checkboxes and nothing else, byte for
//! byte. What is wrong with a plan is a [`PlanError`] with line, column and a hint; what is odd
//! about it is a [`Warning`].
//!
//! It must not read a file, a clock or the environment, nor decide what runs when. Work and memory
//! grow with the length of the text and no faster, and the text has a limit.
//!
//! Plans of other programs, lists and headings are read by `readers/`, a module for each format,
//! into a `draft`; `assemble` chooses its phases, `mark` writes each mark in the document's own
//! way, and `mark_index` knows where all of them are, so that one can be set without reading the
//! plan again. `normalise` writes any plan in the form above.
//!
//! From text to plan: `source` is the checked text and its lines, `block` finds the kind of each
//! line, `inline` removes markup, `cells` and `table` find the overview table, `heading` and
//! `section` find the sections, `outline` is all of that together and what an edit works on.
//! `reference`, `estimate`, `status` and `settings` read cells and blocks; `files` finds phases
//! that change the same files; `read` builds the plan.

mod assemble;
mod block;
mod cells;
mod checks;
mod draft;
mod edit;
mod error;
mod estimate;
pub(crate) mod files;
mod format;
mod hash;
mod heading;
mod id;
mod inline;
mod label;
mod mark;
mod mark_index;
mod normalise;
mod outline;
mod plan;
mod read;
mod readers;
mod reference;
mod section;
mod sequence;
mod settings;
mod settings_block;
mod source;
mod spelling;
mod status;
mod table;
mod warning;
mod words;

pub use edit::{Change, Edit, updated, updated_files};
pub use error::{ERRORS_MAX, NotText, PlanError, PlanErrorKind, PlanErrors};
pub use format::{By, Format, ReadOptions};
pub use id::{PhaseId, PhaseIdError};
pub use mark_index::MarkIndex;
pub use normalise::normalised;
pub use plan::{Phase, Plan, Task};
pub use read::{parse, read};
pub use readers::{PlanText, stories_of};
pub use settings::{GateSetting, Limit, Settings};
pub use status::Status;
pub use warning::{WARNINGS_MAX, Warning};

/// The largest plan, in bytes.
pub const PLAN_BYTES_MAX: usize = 8 << 20;
/// The most phases in a plan.
pub const PHASES_MAX: usize = 10_000;
/// The most tasks in a plan.
pub const TASKS_MAX: usize = 100_000;
/// The most headings in a plan.
pub const HEADINGS_MAX: usize = 100_000;
