//! Plans: from a document to finished phases, or to a halt that can be gone on from.
//!
//! - [`document`]: Markdown in, a plan out, and the marks in the Markdown.
//! - [`record`]: what the events of a run add up to.
//! - [`start_events`]: how a run begins or goes on.
//! - [`observers`]: what follows a run into files.
//! - [`workspace`]: where phases run: worktrees of their own, or the folder itself.
//! - [`present`]: a run in the words of the reports.
//! - [`view`]: the project's `.backstop/`, for people and for tools that read files.
//!
//! It must not print, read the environment or the clock on the wall: those come from the caller. How an agent or a gate is
//! run and what git does is `backstop-work`'s.

pub mod document;
pub mod observers;
pub mod present;
pub mod record;
pub mod start_events;
pub mod view;
pub mod workspace;

/// How a plan's run came to its end.
pub type Ending = backstop_runtime::host::Ending<record::RunRecord, workspace::Conclusion>;
