//! What goes wrong in the command line: a kind, which is the exit code, a message, its source, and
//! what to type next.
//!
//! The one place that maps errors to exit codes. Errors of the libraries come with their own words
//! and hints; errors of a command are made where they happen, with [`failed`] and [`usage`].

use backstop_classify::PackError;
use backstop_config::ConfigError;
use backstop_core::duration::QuantityError;
use backstop_install::InstallError;
use backstop_runtime::ProjectError;
use backstop_store::StoreError;
use std::error::Error;
use std::fmt::Display;
use std::path::Path;

/// It worked.
pub(crate) const DONE: u8 = 0;
/// It failed.
pub(crate) const FAILED: u8 = 1;
/// It was asked for in a way that cannot be understood.
pub(crate) const USAGE: u8 = 2;
/// It stopped, and can be gone on with.
pub(crate) const HALTED: u8 = 3;
/// Not now: try later.
pub(crate) const DEFERRED: u8 = 75;
/// Interrupted by Ctrl-C or a signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// What kind of trouble it is: it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Something on this machine is not as it should be.
    Failed,
    /// What was typed or written is not understood.
    Usage,
    /// Not now.
    Deferred,
}

/// What goes wrong in the command line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CliError {
    pub(crate) kind: ErrorKind,
    message: String,
    /// The error that it comes from.
    source: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
    /// Whether each line of the message is ours, so that its line ends are shown.
    pub(crate) is_multiline: bool,
}

/// Trouble on this machine.
pub(crate) fn failed(message: impl Display) -> CliError {
    CliError::new(ErrorKind::Failed, message)
}

/// Something that was typed or written is not understood.
pub(crate) fn usage(message: impl Display) -> CliError {
    CliError::new(ErrorKind::Usage, message)
}

impl CliError {
    fn new(kind: ErrorKind, message: impl Display) -> Self {
        let message = message.to_string();
        Self { kind, message, source: None, hints: Vec::new(), is_multiline: false }
    }

    fn of(kind: ErrorKind, error: impl Error + Send + Sync + 'static) -> Self {
        let mut this = Self::new(kind, &error);
        this.source = Some(Box::new(error));
        this
    }

    /// With one more thing to type next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// With these.
    pub(crate) fn hints_from(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// With a message whose lines are all ours.
    pub(crate) fn multiline(mut self) -> Self {
        self.is_multiline = true;
        self
    }

    /// The error of the project that it comes from; one of the process counts as a file that cannot
    /// be read.
    pub(crate) fn into_project_error(self) -> ProjectError {
        match self.source.map(<dyn Error + Send + Sync + 'static>::downcast::<ProjectError>) {
            Some(Ok(error)) => *error,
            _ => ProjectError::Read { file: ".".into(), error: std::io::Error::other(self.message) },
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self.kind {
            ErrorKind::Failed => FAILED,
            ErrorKind::Usage => USAGE,
            ErrorKind::Deferred => DEFERRED,
        }
    }

    /// What to type next.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The first of them.
    pub(crate) fn first_hint(&self) -> Option<&str> {
        self.hints.first().map(String::as_str)
    }

    /// A file cannot be read.
    pub(crate) fn read(file: impl AsRef<Path>, error: std::io::Error) -> Self {
        let mut this = failed(format!("cannot read {}: {error}", file.as_ref().display()))
            .hint("check the path, and that you may read the file");
        this.source = Some(Box::new(error));
        this
    }

    /// A file cannot be written.
    pub(crate) fn write(file: impl AsRef<Path>, error: std::io::Error) -> Self {
        let mut this = failed(format!("cannot write {}: {error}", file.as_ref().display()))
            .hint("check that you may write there, and that the disk is not full");
        this.source = Some(Box::new(error));
        this
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: std::io::Error) -> Self {
        let mut this = failed(format!("cannot write the output: {error}"));
        this.source = Some(Box::new(error));
        this
    }

    /// Signals cannot be listened for.
    pub(crate) fn signals(error: std::io::Error) -> Self {
        let mut this = failed(format!("cannot listen for signals: {error}"));
        this.source = Some(Box::new(error));
        this
    }
}

impl From<ProjectError> for CliError {
    fn from(error: ProjectError) -> Self {
        let kind = match &error {
            ProjectError::Frozen(_) => ErrorKind::Deferred,
            error if error.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        };
        let hints = error.hints();
        let is_multiline = matches!(error, ProjectError::Config(_) | ProjectError::Examples(_));
        let this = Self::of(kind, error).hints_from(hints);
        if is_multiline { this.multiline() } else { this }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<PackError> for CliError {
    fn from(error: PackError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        let kind =
            if matches!(error, InstallError::NothingFound) { ErrorKind::Usage } else { ErrorKind::Failed };
        let hint = error.hint();
        Self::of(kind, error).hint(hint)
    }
}

impl From<backstop_core::UnknownReason> for CliError {
    fn from(error: backstop_core::UnknownReason) -> Self {
        Self::of(ErrorKind::Usage, error)
            .hint("`backstop reasons` lists them all; `backstop rules show RULE` shows a rule")
    }
}

impl From<backstop_core::IdError> for CliError {
    fn from(error: backstop_core::IdError) -> Self {
        Self::of(ErrorKind::Usage, error).hint("`backstop runs` lists the runs of this project")
    }
}

impl From<backstop_store::DeferredIdError> for CliError {
    fn from(error: backstop_store::DeferredIdError) -> Self {
        Self::of(ErrorKind::Usage, error).hint("`backstop deferred list` lists deferred work")
    }
}

impl From<QuantityError> for CliError {
    fn from(error: QuantityError) -> Self {
        Self::of(ErrorKind::Usage, error).hint("for example: 30 (seconds), 10m, 1h30m, 7d")
    }
}
