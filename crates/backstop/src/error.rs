//! What goes wrong in the command line: a kind, which is the exit code, a message, its source, and
//! what to type next.
//!
//! The one place that maps errors to exit codes. Errors of the libraries come with their own words
//! and hints; errors of a command are made where they happen, with [`failed`] and [`usage`].

pub(crate) use backstop_core::ErrorKind;
use backstop_core::HintedError;
use backstop_runtime::ProjectError;
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
/// It cannot go on without a person: tasks are blocked, or questions are open.
pub(crate) const BLOCKED: u8 = 4;
/// Not now: try later.
pub(crate) const DEFERRED: u8 = 75;
/// Interrupted by Ctrl-C or a signal.
pub(crate) const INTERRUPTED: u8 = 130;

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

impl CliError {
    /// An error of a library, with its own words and hints.
    fn hinted(error: impl HintedError) -> Self {
        let mut this = Self::new(error.kind(), &error).hints_from(error.hints());
        this.is_multiline = error.is_multiline();
        this.source = Some(Box::new(error));
        this
    }
}

/// Errors of the libraries that say themselves what kind they are and what to type next.
macro_rules! hinted {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::hinted(error)
            }
        })*
    };
}

hinted!(
    backstop_campaign::CampaignError,
    backstop_config::ConfigError,
    backstop_core::IdError,
    backstop_core::UnknownReason,
    backstop_core::deferred::DeferredIdError,
    backstop_core::duration::QuantityError,
    backstop_demo::DemoError,
    backstop_hook::HookError,
    backstop_install::InstallError,
    backstop_llm::TrimError,
    backstop_llm::proxy::ProxySettingsError,
    backstop_plan::run::PlanRunError,
    backstop_plan::start::RunError,
    backstop_plan::writer::WriteError,
    ProjectError,
    backstop_runtime::admission::ProviderError,
    backstop_runtime::aftermath::deferred::DeferredError,
    backstop_runtime::aftermath::sink_test::SinkTestError,
    backstop_runtime::command::CacheKeyError,
    backstop_runtime::command::OverrideError,
    backstop_runtime::runs::RunsError,
    backstop_store::StoreError,
    backstop_tools::CallWordsError,
    backstop_tools::ConfirmError,
    backstop_tools::MoveError,
    backstop_tools::ToolboxError,
    backstop_tools::TrustError,
    backstop_tools::UnknownServer,
);
