//! What a hook is given by the process that it runs in, and what can go wrong around it.

use crate::InputError;
use backstop_core::{ErrorKind, HintedError, Timestamp};
use backstop_runtime::{Project, ProjectError};
use backstop_store::{StateFolder, StoreError};
use std::path::PathBuf;

/// What a hook is given by the process that it runs in.
pub struct Surroundings<'s> {
    /// Opens the project around the current folder, with its settings.
    pub open: &'s dyn Fn() -> Result<Project, ProjectError>,
    /// The state folder, where no settings are needed: that is quicker.
    pub folder: &'s dyn Fn() -> Option<StateFolder>,
    /// The project's root, where no settings are needed.
    pub root: &'s dyn Fn() -> Option<PathBuf>,
    /// The time.
    pub now: fn() -> Timestamp,
    /// Whether every recovery is turned off.
    pub disabled: bool,
}

impl Surroundings<'_> {
    /// Writes down what went wrong. Where even that fails, nobody is to be bothered.
    pub fn log(&self, what: &str) {
        if let Some(folder) = (self.folder)() {
            let _ = folder.log_hook(&format!("hook agent: {what}"));
        }
    }
}

/// Why a hook has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// What came in cannot be read.
    #[error("{0}")]
    Input(#[from] InputError),
    /// The project cannot be used.
    #[error("{0}")]
    Project(#[from] ProjectError),
    /// A gate could not be run.
    #[error("{0}")]
    Gate(String),
    /// No error of this task was reported.
    #[error("no error of a task `{given}` was reported in this project")]
    NoTask {
        /// The task that was asked for.
        given: String,
        /// One with a similar name.
        nearest: Option<String>,
    },
}

impl From<StoreError> for HookError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl HookError {
    /// What to do about it.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Input(error) => vec![error.hint().to_owned()],
            Self::Project(error) => error.hints(),
            Self::Gate(_) => Vec::new(),
            Self::NoTask { nearest: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            Self::NoTask { .. } => vec!["`backstop hook status` lists those that are known".to_owned()],
        }
    }

    /// Whether it is a mistake in what was given.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Input(_) | Self::NoTask { .. } => true,
            Self::Project(error) => error.is_usage(),
            Self::Gate(_) => false,
        }
    }
}

impl HintedError for HookError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Project(error) => error.kind(),
            error if error.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Project(error) if error.is_multiline())
    }
}
