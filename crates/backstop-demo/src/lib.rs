//! What `backstop demo` shows: a plan that fails, recovers and finishes, a command that does, and
//! ten failures. All of it happens in a folder of the demo's own, and by the commands that anybody
//! would type: the demo has no second way to do anything.
//!
//! [`Scratch`] is the folder; [`plan`] and [`command`] are what is run in it; [`faults`] is a
//! script of things that go wrong.
//!
//! It must not print or read the environment: where the temporary folder is, our own program and
//! the variables of git are given to it.

pub mod command;
mod error;
pub mod faults;
pub mod plan;
mod scratch;

pub use error::DemoError;
pub use scratch::{Scratch, Surroundings, demo_states};
