//! Failures that happen outside of Backstop, and how people hear of those inside.
//!
//! - [`on_error`] reads the report of a task that failed and answers whether it is tried again, when, and what its user is
//!   told. [`agent`] reads the events of a coding agent's hooks and answers in the agent's own words. Both are pure: a host
//!   reads, records and runs what they ask for. What they are given was written by others: every text is bounded, and
//!   escaped for where it goes.
//! - [`diagnostics`] looks at the machine that something failed on.
//! - [`install`] puts the calls of `backstop hook agent` into agents' settings, and takes them out again.
//! - [`notify`]: who is told, what, how often, and how it gets there.
//!
//! It must not read the environment or the clock on the wall, nor print: the caller gives it what it needs.

pub mod agent;
pub mod diagnostics;
mod hint;
mod input;
pub mod install;
pub mod notify;
pub mod on_error;

pub use input::{INPUT_BYTES_MAX, InputError, parse};
