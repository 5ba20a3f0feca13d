//! Plans: a Markdown document becomes phases, and phases are run until the plan is complete or
//! halts and can be resumed.
//!
//! - [`agents`]: agents by name.
//! - [`attempt_log`]: following what an agent says while it works.
//! - [`document`]: Markdown in, a plan out, and the marks in the Markdown.
//! - [`record`]: what the events of a run add up to.
//! - [`start`]: starting or resuming a plan, from any surface; [`start_events`]: what is recorded
//!   then.
//! - [`ended`]: how a run ended, for people and for programs.
//! - [`interrupted`]: runs that nobody carries on, in all projects.
//! - [`run`]: carrying it out; [`runs`]: finding runs, and changing their phases.
//! - [`saved_work`]: what attempts changed, as git has it.
//! - [`observers`]: the files that follow a run: the plan's marks, views, the execution log.
//! - [`workspace`]: where phases run: git worktrees, or the project's folder itself.
//! - [`present`]: a run as values that `backstop-report` renders.
//! - [`writer`]: a plan that an agent writes.
//! - [`view`]: the project's `.backstop/`, for people and for tools that read files.
//!
//! The loop that drives a run is `backstop_runtime::host`; here is what it is given. This crate
//! must not print or read the environment or the wall clock: those come from the caller. Running
//! agents, gates and git is `backstop-work`'s job.

mod admission;
pub mod agents;
mod allowance;
pub mod attempt_log;
pub mod document;
pub mod ended;
pub mod interrupted;
pub mod observers;
pub mod present;
pub mod record;
pub mod run;
pub mod runs;
pub mod saved_work;
pub mod start;
pub mod start_events;
pub mod view;
pub mod workspace;
pub mod writer;

/// How a plan's run ended.
pub type Ending = backstop_runtime::host::Ending<record::RunRecord, workspace::Conclusion>;
