//! Failures that happen outside of Backstop: others report them, and are answered.
//!
//! - [`on_error`] reads the report of a task that failed and answers whether it is tried again,
//!   when, and what its user is told.
//! - [`agent`] reads the events of a coding agent's hooks and answers in the agent's own words.
//!
//! Both are given text that others wrote: every text is bounded, and escaped for where it goes. The
//! crate must not read the environment or the clock on the wall, nor print: the caller gives it
//! what it needs.

pub mod agent;
mod hint;
mod input;
pub mod on_error;
mod record;
mod surroundings;
pub mod tasks;

pub use input::{INPUT_BYTES_MAX, InputError, parse};
pub use surroundings::{HookError, Surroundings};
