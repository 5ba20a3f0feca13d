//! The answers of hooks: the on-error seed's three texts for a person, and texts for an agent.
//!
//! Each template turns a struct into Markdown, or into a text for an agent. Text from outside
//! stands in code spans and fences only. It must not decide whether anything is retried.

mod agent;
mod task;

pub use agent::{AgentFailure, FailedGate, agent_denied, agent_failure, agent_frozen, agent_stop_blocked};
pub use task::{TaskCommand, TaskError, TaskFollowUp, task_error};
