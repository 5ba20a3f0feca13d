//! How a run ended, and why a host cannot go on.

use super::{NodesError, RunLogError};
use backstop_core::{End, Fault, Reason};

/// Why a host cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing can be recorded: then nothing may be done.
    #[error("the run stops, since nothing can be recorded: {0}")]
    Log(#[from] RunLogError),
    /// The recorded nodes are no graph that can be worked through.
    #[error("the run's nodes cannot be worked through: {0}")]
    Nodes(#[from] NodesError),
}

impl HostError {
    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            HostError::Log(error) => error.hint().to_owned(),
            HostError::Nodes(_) => {
                "`backstop doctor` checks the store; report this with its output".to_owned()
            }
        }
    }
}

/// How a run came to its end.
#[derive(Debug)]
pub struct Ending<R, C> {
    /// Complete, halted or stopped.
    pub end: End,
    /// The reason of the failure, where the run halted.
    pub reason: Option<Reason>,
    /// All that is known of the run.
    pub record: R,
    /// Where the work is, where the run is complete.
    pub conclusion: Option<C>,
    /// What kept the run from beginning any node.
    pub unprepared: Option<Box<Fault>>,
    /// What kept the work from being concluded, where every node is complete and it is not.
    pub unconcluded: Option<Box<Fault>>,
    /// Why the project is frozen, where that stopped the run.
    pub frozen: Option<Reason>,
}
