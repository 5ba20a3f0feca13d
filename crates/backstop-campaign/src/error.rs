//! What keeps a campaign from being run or changed, and what to type next.

use backstop_config::ConfigError;
use backstop_core::{ErrorKind, HintedError, Reason, SafeText};
use backstop_plan::run::PlanRunError;
use backstop_plan::start::RunError;
use backstop_runtime::ProjectError;
use backstop_runtime::host::{HostError, RunLogError};
use backstop_store::{Holder, StoreError};

/// What keeps a campaign from being run or changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs)] // The message of each says what it is; the fields are what it names.
pub enum CampaignError {
    #[error("{0}")]
    Start(#[from] Box<RunError>),
    #[error("{0}")]
    Host(Box<HostError>),
    #[error("{0}")]
    Project(#[from] ProjectError),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("no campaign was started in this project")]
    NoCampaign,
    #[error("a campaign is being run in this project{}", holder.as_ref().map(|holder| format!(" by process {}", holder.pid)).unwrap_or_default())]
    HeldBy { holder: Option<Holder> },
    #[error("there is no task `{given}` in this campaign")]
    NoTask { given: String, known: Vec<String> },
    #[error("task {seq} is {status}")]
    WrongStatus { seq: String, status: &'static str, wanted: &'static str },
    #[error("no objective is given")]
    NoObjective,
    #[error("a campaign is not finished in this project: {}", objective.line(200))]
    Unfinished { objective: SafeText },
    #[error("no question waits for an answer")]
    NoQuestions,
    #[error("{given} answers were given, and {asked} questions are open")]
    AnswerCount { given: usize, asked: usize },
    #[error("this campaign has no tasks yet")]
    NoTasks,
}

impl CampaignError {
    /// What a campaign that was begun ends with because of it.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Start(error) => error.reason(),
            Self::Config(_) => Reason::InvalidUsage,
            _ => Reason::StateInvalid,
        }
    }
}

impl From<StoreError> for CampaignError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl From<RunLogError> for CampaignError {
    fn from(error: RunLogError) -> Self {
        Self::Host(Box::new(error.into()))
    }
}

impl From<RunError> for CampaignError {
    fn from(error: RunError) -> Self {
        Self::Start(Box::new(error))
    }
}

impl From<PlanRunError> for CampaignError {
    fn from(error: PlanRunError) -> Self {
        match error {
            PlanRunError::Start(error) => error.into(),
            PlanRunError::Host(error) => Self::Host(Box::new(error)),
        }
    }
}

impl HintedError for CampaignError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Start(error) => error.kind(),
            Self::Project(error) => error.kind(),
            Self::Config(error) => error.kind(),
            Self::NoObjective | Self::Unfinished { .. } => ErrorKind::Usage,
            Self::NoTask { .. } | Self::WrongStatus { .. } | Self::AnswerCount { .. } => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Start(error) => return error.hints(),
            Self::Project(error) => return HintedError::hints(error),
            Self::Config(error) => return HintedError::hints(error),
            Self::Host(error) => error.hint(),
            Self::NoCampaign => "`backstop campaign \"what is to be reached\"` starts one".to_owned(),
            Self::NoObjective => "say in one sentence what is to be reached".to_owned(),
            Self::Unfinished { .. } => {
                "`backstop campaign` goes on with it; `--fresh` starts another one, and commits stay"
                    .to_owned()
            }
            Self::HeldBy { .. } => "`backstop campaign watch` follows it".to_owned(),
            Self::NoTask { known, .. } if known.is_empty() => {
                "it has no tasks yet; `backstop campaign` goes on with it".to_owned()
            }
            Self::NoTask { known, .. } => {
                format!("tasks are {}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", "))
            }
            Self::WrongStatus { wanted, .. } => {
                format!("this is for tasks that are {wanted}; see `backstop campaign status`")
            }
            Self::NoQuestions => "`backstop campaign status` shows where it stands".to_owned(),
            Self::AnswerCount { .. } => {
                "give one answer for each question, in their order; `backstop campaign status` lists them"
                    .to_owned()
            }
            Self::NoTasks => "`backstop campaign` goes on with it".to_owned(),
        };
        vec![hint]
    }

    fn is_multiline(&self) -> bool {
        match self {
            Self::Start(error) => HintedError::is_multiline(&**error),
            Self::Project(error) => HintedError::is_multiline(error),
            Self::Config(error) => HintedError::is_multiline(error),
            _ => false,
        }
    }
}
