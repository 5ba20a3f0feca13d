//! What keeps a run from beginning in a project.

use backstop_classify::{ClassifierError, ExampleFailure, PackError};
use backstop_config::ConfigError;
use backstop_core::nearest::nearest;
use backstop_core::{ErrorKind, HintedError, IdError};
use backstop_store::{Freeze, StoreError};
use std::path::PathBuf;

/// What keeps a run from beginning in a project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The settings have mistakes.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A store cannot be used.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Nothing says where the state folder is.
    #[error("there is no folder for Backstop's state: neither BACKSTOP_STATE_DIR nor HOME is set")]
    NoStateFolder,
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A rule pack has a mistake.
    #[error("{0}")]
    Pack(#[from] PackError),
    /// Rule packs do not fit together.
    #[error("{0}")]
    Classifier(ClassifierError),
    /// Rules of a pack do not match their own examples.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Examples(Vec<ExampleFailure>),
    /// The project is frozen.
    #[error("this project is frozen since {} ({}): {}", .0.at, .0.reason, .0.why.line(300))]
    Frozen(Box<Freeze>),
    /// A budget that was never set.
    #[error("there is no budget `{given}`")]
    NoBudget {
        /// What was given.
        given: String,
        /// Those that are set.
        known: Vec<String>,
    },
    /// A name is none.
    #[error("{0}")]
    Name(#[from] IdError),
}

impl From<ClassifierError> for ProjectError {
    fn from(error: ClassifierError) -> Self {
        match error {
            ClassifierError::Pack(error) => Self::Pack(error),
            error @ ClassifierError::TooManyPatterns(_) => Self::Classifier(error),
        }
    }
}

impl ProjectError {
    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Config(error) => error.hints(),
            Self::Store(error) => vec![error.hint()],
            Self::NoStateFolder => vec!["set BACKSTOP_STATE_DIR to a folder of your own".to_owned()],
            Self::Read { .. } => vec!["check the path, and that it is a file that you may read".to_owned()],
            Self::Pack(error) => error.hint.clone().into_iter().collect(),
            Self::Classifier(_) => vec!["give the pack's rules fewer or shorter literals".to_owned()],
            Self::Examples(failures) => {
                let matched = failures.first().map(|f| f.matched.join(", ")).filter(|m| !m.is_empty());
                let mut hints =
                    vec!["correct the rule or its example, then run `backstop rules test` again".to_owned()];
                hints.extend(matched.map(|m| format!("the first of these texts is matched by {m}")));
                hints
            }
            Self::Frozen(freeze) => {
                let mut hints = vec!["put it right, then `backstop unfreeze --why TEXT`".to_owned()];
                hints.extend(freeze.run.map(|run| format!("`backstop diagnose {run}` shows what happened")));
                hints
            }
            Self::NoBudget { given, known } if known.is_empty() => {
                vec![format!("`backstop budget set {given} 50 --per day` makes it")]
            }
            Self::NoBudget { given, known } => {
                let near = nearest(given, known.iter().map(String::as_str));
                let near = near.map(|near| format!("did you mean `{near}`?"));
                // One that is spent in several scopes is listed for each.
                let mut known = known.clone();
                known.dedup();
                near.into_iter().chain([format!("budgets are {}", known.join(", "))]).collect()
            }
            Self::Name(_) => vec!["use letters, digits, dots, dashes and underscores".to_owned()],
        }
    }

    /// Whether it is a mistake in what was typed or written, and not trouble of this machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Config(_)
                | Self::Pack(_)
                | Self::Classifier(_)
                | Self::Examples(_)
                | Self::NoBudget { .. }
                | Self::Name(_)
        )
    }
}

impl HintedError for ProjectError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Frozen(_) => ErrorKind::Deferred,
            error if error.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Config(_) | Self::Examples(_))
    }
}
