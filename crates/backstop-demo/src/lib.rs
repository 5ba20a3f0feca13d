//! What `backstop demo` shows: a plan that fails, recovers and finishes, a command that does, and
//! ten failures. All of it happens in a folder of the demo's own, and by the commands that anybody
//! would type: the demo has no second way to do anything.
//!
//! [`Scratch`] is the folder; [`play_plan`] and [`play_command`] show what is run in it,
//! [`play_faults`] a script of things that go wrong, each on a [`Stage`].
//!
//! It must not print or read the environment: where the temporary folder is, our own program and
//! the variables of git are given to it.

mod command;
mod error;
mod faults;
mod plan;
mod play;
mod scratch;

pub use error::DemoError;
pub use play::{Stage, Warning, play_command, play_faults, play_plan};
pub use scratch::{Scratch, Surroundings, demo_states};
