//! Why an agent cannot be run as it is described.

use super::definition::{ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, PLACEHOLDERS};
use backstop_core::nearest;

/// Why an agent cannot be run as it is described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// It has no command line.
    #[error("agent `{agent}` has no command line")]
    Empty {
        /// The agent.
        agent: String,
    },
    /// Its command line is too long.
    #[error(
        "agent `{agent}`: more than {ARGUMENTS_MAX} arguments, or one of more than {ARGUMENT_BYTES_MAX} bytes"
    )]
    TooLong {
        /// The agent.
        agent: String,
    },
    /// An argument or a variable holds what none can hold.
    #[error("agent `{agent}`: {what} holds a NUL, or is a variable without a name")]
    Unpassable {
        /// The agent.
        agent: String,
        /// Which one.
        what: String,
    },
    /// There is no such placeholder.
    #[error("agent `{agent}`: there is no placeholder `{{{placeholder}}}`")]
    UnknownPlaceholder {
        /// The agent.
        agent: String,
        /// What was written.
        placeholder: String,
    },
    /// A model is needed and none was named.
    #[error("agent `{agent}`: its command line needs a model and none was named")]
    NeedsModel {
        /// The agent.
        agent: String,
    },
    /// A model was named and there is no way to pass it on.
    #[error("agent `{agent}`: its command line has no place for a model")]
    TakesNoModel {
        /// The agent.
        agent: String,
    },
}

impl AgentError {
    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            Self::Empty { agent } => format!("give `{agent}` a program and its arguments, as a list"),
            Self::TooLong { .. } => "put long texts into a file and name the file".to_owned(),
            Self::Unpassable { .. } => "name every variable, and leave NUL bytes out".to_owned(),
            Self::UnknownPlaceholder { placeholder, .. } => {
                let known = || PLACEHOLDERS.iter().map(|(name, _)| *name);
                match nearest::nearest(placeholder, known()) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => {
                        format!(
                            "there are {}",
                            known().map(|n| format!("{{{n}}}")).collect::<Vec<_>>().join(", ")
                        )
                    }
                }
            }
            Self::NeedsModel { .. } => "name a model, or take `{model}` out of the command line".to_owned(),
            Self::TakesNoModel { .. } => {
                "put `{model}` into the command line, or give the agent a model flag".to_owned()
            }
        }
    }
}
