//! What keeps a demo from being shown.

use backstop_core::{ErrorKind, HintedError};
use std::path::PathBuf;

/// What keeps a demo from being shown.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A program that it needs cannot be started.
    #[error("cannot run `{program}`: {error}")]
    CannotRun {
        /// The program.
        program: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// What it shows cannot be printed.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// Its folder cannot be written.
    #[error("cannot write {}: {error}", file.display())]
    Write {
        /// The file or folder.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl HintedError for DemoError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Failed
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::Output(_) => return Vec::new(),
            Self::CannotRun { program, .. } => format!("install `{program}`, or put it on the PATH"),
            Self::Write { .. } => "check that you may write there, and that the disk is not full".to_owned(),
        }]
    }
}
