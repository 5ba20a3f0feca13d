//! The errors of changing a settings file, each with a hint.

use backstop_core::json::{JsonError, JsonErrorKind, place};
use backstop_core::{ErrorKind, HintedError, shell};
use backstop_files::{FileError, FileKind};
use std::path::{Path, PathBuf};

/// Why a settings file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The path is a folder, a pipe or a device.
    #[error("{} is not a file", file.display())]
    NotAFile {
        /// The path.
        file: PathBuf,
    },
    /// The path, or a folder on the way to it, is a link in the project.
    #[error("{} is a symbolic link, and links in a project are not followed", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The path is a symbolic link whose target does not exist.
    #[error("{} is a broken link", file.display())]
    Dangling {
        /// The link.
        file: PathBuf,
    },
    /// The file is larger than the limit.
    #[error("{} is larger than {max} bytes, which no settings file is", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        max: u64,
    },
    /// The file is not UTF-8.
    #[error("{}:{line}:{column}: not UTF-8", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The JSON in the file cannot be changed safely.
    #[error("{}:{line}:{column}: {kind}; the file was left as it is", file.display())]
    Place {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        kind: JsonErrorKind,
    },
    /// The path of our plugin holds a file that Backstop did not create.
    #[error("{} was not made by `backstop init`", file.display())]
    NotOurs {
        /// The file.
        file: PathBuf,
    },
    /// The file was changed after it was read.
    #[error("{} was changed by another program just now", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The file was changed since something was put into it, so that it cannot be restored.
    #[error("{} was changed since, and cannot be restored as it was", file.display())]
    ChangedSince {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {error}", file.display())]
    Write {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// No agent was named, and none was found.
    #[error(
        "no agent was found: none of claude, codex, opencode, gemini, copilot and qwen has a folder here or is on the PATH"
    )]
    NothingFound,
    /// The user's settings were asked for, but there is no home folder.
    #[error("there is no home folder: HOME is not set")]
    NoHome,
}

impl InstallError {
    /// The error at its line and column in the file.
    pub(crate) fn at(file: &Path, text: &str, error: JsonError) -> Self {
        let (line, column) = place(text, error.at);
        Self::Place { file: file.to_owned(), line, column, kind: error.kind }
    }

    /// The error for a file that was not opened.
    pub(crate) fn refused(file: &Path, error: FileError) -> Self {
        let file = file.to_owned();
        match error {
            FileError::Refused { path, kind: FileKind::Link } => Self::Link { path },
            FileError::TooLarge { bytes_max, .. } => Self::TooLarge { file, max: bytes_max },
            FileError::Io { source, .. } => Self::Read { file, error: source },
            _ => Self::NotAFile { file },
        }
    }

    /// What to do next, for the `hint:` line.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { .. } => "check that you may read it, and the folders above it".to_owned(),
            Self::NotAFile { .. } => "move it away, or replace it with a file".to_owned(),
            Self::Link { path } => {
                let path = shell::quoted(&path.to_string_lossy());
                format!("remove it (`rm {path}`), or change your own settings: `backstop init --user`")
            }
            Self::Dangling { file } => {
                format!("`ls -l {}` shows its target; remove the link, or create the target", file.display())
            }
            Self::TooLarge { .. } => "check what wrote it".to_owned(),
            Self::NotText { .. } => "save it as UTF-8, then run the command again".to_owned(),
            Self::Place { kind: JsonErrorKind::Shape { .. } | JsonErrorKind::Twice { .. }, .. } => {
                "correct it there; docs/hooks-init.md shows what hooks look like".to_owned()
            }
            Self::Place { .. } => "correct the file there, then run the command again".to_owned(),
            Self::NotOurs { .. } => "move it away if it is not needed, then run the command again".to_owned(),
            Self::Changed { .. } => "run the command again".to_owned(),
            Self::ChangedSince { .. } => {
                "take the entry `backstop` out by hand, and put the servers of backstop.toml back".to_owned()
            }
            Self::Write { .. } => "check that you may write there, and that the disk is not full".to_owned(),
            Self::NothingFound => {
                "name one: `backstop init --claude`, `--codex`, `--opencode`, `--gemini`, `--copilot`, `--qwen` or `--all`".to_owned()
            }
            Self::NoHome => "set HOME, or leave --user out".to_owned(),
        }
    }
}

impl HintedError for InstallError {
    fn kind(&self) -> ErrorKind {
        if matches!(self, Self::NothingFound) { ErrorKind::Usage } else { ErrorKind::Failed }
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint()]
    }
}
