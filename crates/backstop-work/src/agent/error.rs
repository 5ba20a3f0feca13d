//! Why an attempt could not begin.

use super::agent_error::AgentError;
use backstop_core::{Fault, Reason, SafeText};
use backstop_exec::StartError;
use std::path::PathBuf;

/// Why an attempt could not begin. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The agent cannot be run as it is described.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The command is empty.
    #[error("the command of phase `{phase}` is empty")]
    NoCommand {
        /// The phase.
        phase: String,
    },
    /// A file of the attempt cannot be written.
    #[error("cannot prepare {}: {error}", path.display())]
    Scratch {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The process cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<(PathBuf, std::io::Error)> for AttemptError {
    fn from((path, error): (PathBuf, std::io::Error)) -> Self {
        Self::Scratch { path, error }
    }
}

impl AttemptError {
    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            Self::Agent(error) => error.hint(),
            Self::NoCommand { phase } => format!("give phase `{phase}` a command in the plan"),
            Self::Scratch { .. } => {
                "check that there is space and that the folder is yours: `df -h`, `ls -ld`".to_owned()
            }
            Self::Start(StartError::NotFound { program }) => {
                format!("install `{program}`, or put it on the PATH: `command -v {program}`")
            }
            Self::Start(StartError::NotExecutable { program, .. }) => {
                format!("make it executable: `chmod +x {program}`")
            }
            Self::Start(StartError::Folder { folder, .. }) => format!("check the folder: `ls -ld {folder}`"),
            Self::Start(StartError::System { .. }) => "check the limits of this user: `ulimit -a`".to_owned(),
        }
    }

    /// What it is. It was never dispatched: free to repeat, as far as harm goes.
    pub fn fault(&self) -> Fault {
        let reason = match self {
            Self::Agent(_) => Reason::InvalidUsage,
            Self::NoCommand { .. } => Reason::PlanInvalid,
            Self::Scratch { error, .. } if error.kind() == std::io::ErrorKind::StorageFull => {
                Reason::DiskFull
            }
            Self::Scratch { .. } => Reason::StateInvalid,
            Self::Start(StartError::NotFound { .. }) => Reason::DependencyMissing,
            Self::Start(StartError::NotExecutable { .. }) => Reason::PermissionDenied,
            Self::Start(StartError::Folder { .. }) => Reason::StateInvalid,
            Self::Start(StartError::System { .. }) => Reason::ResourceExhausted,
        };
        let mut fault = Fault::new(reason);
        fault.cause = Some(SafeText::new(self.to_string()));
        fault.suggested_action = SafeText::new(self.hint());
        if let Self::Start(StartError::NotFound { program }) = self {
            fault.facts.missing = Some(SafeText::new(program.as_str()));
        }
        fault
    }
}
