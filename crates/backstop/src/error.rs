//! The one place that maps errors to words and exit codes.

use backstop_classify::{ClassifierError, ExampleFailure, PackError};
use std::path::PathBuf;

/// It worked.
pub(crate) const DONE: u8 = 0;
/// It failed.
pub(crate) const FAILED: u8 = 1;
/// It was asked for in a way that cannot be understood.
pub(crate) const USAGE: u8 = 2;

/// Everything that can go wrong in the CLI.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: std::io::Error },
    #[error("cannot write {}: {error}", file.display())]
    Write { file: PathBuf, error: std::io::Error },
    #[error("cannot run `{command}`: {error}")]
    Run { command: String, error: std::io::Error },
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    #[error("{0}")]
    Reason(#[from] backstop_core::UnknownReason),
    #[error("`{given}` is no signal: use a number from 1 to 64, or a name such as SIGTERM")]
    Signal { given: String },
    #[error("`{given}` is no header: write it as `name: value`")]
    Header { given: String },
    #[error("{}", .0)]
    Pack(PackError),
    #[error("{}", .0)]
    Classifier(ClassifierError),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Examples(Vec<ExampleFailure>),
    #[error("there is no rule `{given}`")]
    NoRule { given: String, nearest: Option<String> },
    #[error("there is no pack `{given}`")]
    NoPack { given: String, known: Vec<String> },
    #[error("{lines} of the batch's lines could not be read; each is answered with an error")]
    Batch { lines: u64 },
}

impl CliError {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            CliError::Read { .. }
            | CliError::Write { .. }
            | CliError::Run { .. }
            | CliError::Output(_)
            | CliError::Batch { .. } => FAILED,
            CliError::Reason(_)
            | CliError::Signal { .. }
            | CliError::Header { .. }
            | CliError::Pack(_)
            | CliError::Classifier(_)
            | CliError::Examples(_)
            | CliError::NoRule { .. }
            | CliError::NoPack { .. } => USAGE,
        }
    }

    /// What to type next.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            CliError::Read { .. } => {
                vec!["check the path, and that it is a file that you may read".to_owned()]
            }
            CliError::Write { .. } => {
                vec!["name a folder that you may write, or one that is not there yet".to_owned()]
            }
            CliError::Run { command, .. } => vec![format!("install `{command}`, or put it on the PATH")],
            CliError::Output(_) => Vec::new(),
            CliError::Reason(_) => {
                vec!["`backstop reasons` lists them all; `backstop rules show RULE` shows a rule".to_owned()]
            }
            CliError::Signal { .. } => {
                vec!["for example: `backstop classify --signal SIGSEGV out.log`".to_owned()]
            }
            CliError::Header { .. } => vec!["for example: `--header 'retry-after: 30'`".to_owned()],
            CliError::Pack(error) => error.hint.clone().into_iter().collect(),
            CliError::Classifier(ClassifierError::Pack(error)) => error.hint.clone().into_iter().collect(),
            CliError::Classifier(_) => vec!["give the pack's rules fewer or shorter literals".to_owned()],
            CliError::Examples(failures) => {
                let matched = failures.first().map(|f| f.matched.join(", ")).filter(|m| !m.is_empty());
                let mut hints =
                    vec!["correct the rule or its example, then run `backstop rules test` again".to_owned()];
                hints.extend(matched.map(|m| format!("the first of these texts is matched by {m}")));
                hints
            }
            CliError::NoRule { nearest: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            CliError::NoRule { .. } => vec!["`backstop rules list` lists them all".to_owned()],
            CliError::NoPack { known, .. } => vec![format!("packs are {}", known.join(", "))],
            CliError::Batch { .. } => vec!["look for answers with an `error` field".to_owned()],
        }
    }
}

impl From<PackError> for CliError {
    fn from(error: PackError) -> Self {
        Self::Pack(error)
    }
}

impl From<ClassifierError> for CliError {
    fn from(error: ClassifierError) -> Self {
        match error {
            ClassifierError::Pack(error) => Self::Pack(error),
            error @ ClassifierError::TooManyPatterns(_) => Self::Classifier(error),
        }
    }
}
