//! The sessions of agents that work on nodes: which one an attempt used, and how that attempt
//! ended.

use super::NodeRecord;
use backstop_core::{Reason, Timestamp, Usage};

/// A session of an agent, as the agent named it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSession {
    /// The agent.
    pub agent: String,
    /// The agent's own id of the session.
    pub id: String,
    /// The folder that it was used in last.
    pub folder: String,
    /// The attempt that used it last, counted from 1.
    pub attempt: u32,
    /// Whether that attempt continued it, after an earlier one.
    pub continued: bool,
    /// What is known to have been used in it.
    pub used: Usage,
    /// When it was begun.
    pub begun: Timestamp,
}

/// The session of an earlier attempt, and how that attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorSession {
    /// The session.
    pub session: AgentSession,
    /// What the attempt failed of; nothing where nobody knows how it ended.
    pub reason: Option<Reason>,
}

impl NodeRecord {
    /// The session of the last attempt that had one, where that attempt failed or was lost.
    pub fn prior_session(&self) -> Option<PriorSession> {
        let session = self.session.clone()?;
        let error = self.errors.iter().rev().find(|error| error.total == session.attempt);
        let reason = error.map(|error| error.fault.reason);
        let is_over = reason.is_some() || self.lost_attempt == Some(session.attempt);
        is_over.then_some(PriorSession { session, reason })
    }
}
