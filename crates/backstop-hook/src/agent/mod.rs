//! Agents' hooks: an event of a coding agent in, an answer in its own words out, or nothing.
//!
//! The contract is Claude Code's, which others copy, and Codex's, which differs in that a failing
//! tool arrives as an ordinary `PostToolUse` and only its transcript says how it ended.
//! [`AgentEvent`] is what came in, [`call_exit`] and [`broken_turn`] read what a transcript adds.
//! [`tool_fault`] and [`turn_fault`] say what failed; [`starts_agent`] says whose requests a tool
//! would begin to send. [`answer`] holds the shapes of answers. [`handle`] puts it together: it
//! records what failed, closes guards, runs gates and answers.
//!
//! It must not block an agent by any mistake of its own: what cannot be read is no event, and an
//! event that needs no answer has an empty one.

mod advice;
pub mod answer;
mod denial;
mod event;
mod fault;
mod handle;
mod starts;
mod stop;
mod tool;
mod transcript;
mod transcript_file;
mod turn;

pub use event::{AgentEvent, Event, ToolFailure};
pub use fault::{fault_signature, tool_fault, turn_fault};
pub use handle::handle;
pub use starts::{Started, starts_agent};
pub use transcript::{BrokenTurn, TRANSCRIPT_BYTES_MAX, broken_turn, call_exit};

/// From how many times in a row on an agent is told to stop repeating a fault.
pub const REPEATS_MAX: u32 = 3;
/// Whose guard counts where an event does not say.
pub const USUAL_PROVIDER: &str = "anthropic";
