//! What a phase or task is made of.
//!
//! - [`agent`] runs an agent or a command once and says what came of it.
//! - [`gate`] checks the work: what gates a project suggests, what they find, what that means
//!   beside what was claimed.
//! - [`idioms`] looks for patterns in what was added.
//! - [`git`] gives each phase a worktree, saves what it left, and puts finished work together.
//!
//! It must not retry, decide or record: that is for those above. It prints nothing and reads
//! neither the environment nor the clock on the wall.

pub mod agent;
mod claim;
mod command;
pub mod gate;
pub mod git;
pub mod idioms;
mod log;
pub mod weakened;

pub use claim::Claim;
pub use command::CommandLine;
pub use log::Log;
