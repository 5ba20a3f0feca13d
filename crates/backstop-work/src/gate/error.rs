//! Why gates could not be run at all.

/// Why gates could not be run at all. That a gate fails is no error: it is a `Checked`.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A gate has no command.
    #[error("gate `{gate}` has no command")]
    Empty {
        /// Its name.
        gate: String,
    },
    /// A gate's command has a NUL.
    #[error("the command of gate `{gate}` has a NUL character, which no program can be given")]
    Nul {
        /// Its name.
        gate: String,
    },
    /// The folder cannot be run in.
    #[error("cannot run gates in {folder}: {error}")]
    Folder {
        /// The folder.
        folder: String,
        /// What the system says.
        error: std::io::Error,
    },
}

impl GateError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            GateError::Empty { gate } => {
                format!("give `{gate}` a `check`, or take it off the list of gates")
            }
            GateError::Nul { gate } => format!("write the `check` of `{gate}` without NUL characters"),
            GateError::Folder { folder, .. } => {
                format!("check that it is there: ls -ld {}", backstop_core::shell::quoted(folder))
            }
        }
    }
}
