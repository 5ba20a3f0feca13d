//! What a hook answers: the on-error seed's three texts for a person, and what an agent is told about a call that failed.
//!
//! A template takes what is known and makes Markdown, or a text for an agent. Text from outside stands in code spans and
//! fences only. It must not decide whether anything is tried again.

mod agent;
mod task;

pub use agent::{AgentFailure, FailedGate, agent_denied, agent_failure, agent_frozen, agent_stop_blocked};
pub use task::{TaskCommand, TaskError, TaskFollowUp, task_error};
