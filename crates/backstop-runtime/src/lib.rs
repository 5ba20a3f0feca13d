//! One run on any surface: what is opened, recorded, asked for, told and cleaned up around something that can fail.

pub mod admission;
pub mod aftermath;
pub mod command;
pub mod host;
pub mod machine_state;
pub mod operation;
mod otel;
pub mod process;
pub mod project;
pub mod recorder;

pub use process::{Output, Process};
pub use project::{Place, Project, ProjectError};
pub use recorder::{Observer, Opening, Recorder};
