//! One run on any surface: what is opened, recorded, asked for, told and cleaned up around
//! something that can fail. A surface is an operation or a set of nodes; everything else about it
//! is here.
//!
//! - [`Project`]: where things are. Settings, stores (opened once, damaged ones set aside), the one
//!   redactor of everything that is stored or shown.
//! - [`Recorder`]: the one way to begin, append to and end a run. [`Observer`]s are told what was
//!   recorded, after it was.
//! - [`admission`]: what is asked before an attempt and told after it: budget, guard, breaker,
//!   loops, experience, freeze. [`operation`] puts it around one operation under the engine,
//!   [`command`] is such an operation, [`host`] drives many nodes.
//! - [`runs`] finds what was recorded, [`stats`] adds it up; [`doctor`] checks what would keep all
//!   of this from working.
//! - [`signals`]: what reaches the process while something runs.
//! - [`KeepAwake`]: the machine does not sleep while nodes are worked on.
//! - [`aftermath`]: what follows the end of a run. [`machine_state`]: what the machine had left
//!   when something failed.
//!
//! A failure is recorded before anything else changes: first `attempt.finished` and
//! `error.classified`, then guards, breakers and budgets in their own database, then the events
//! that say so.
//!
//! It must not print, exit, read the environment or a clock: time, identity and output are given to
//! it as a [`Process`]. It must not know what a surface shows to people.

pub mod admission;
pub mod aftermath;
mod awake;
pub mod command;
pub mod doctor;
pub mod expand;
pub mod host;
pub mod machine_state;
pub mod operation;
mod otel;
pub mod process;
pub mod project;
pub mod recorder;
pub mod runs;
pub mod signals;
pub mod stats;

pub use awake::KeepAwake;
pub use process::{Output, Process};
pub use project::{Place, Project, ProjectError};
pub use recorder::{EventLines, Observer, Observers, Opening, Recorder};
