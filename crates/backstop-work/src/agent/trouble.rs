//! Why there is no result.

use super::envelope::masked;
use backstop_core::{Redactor, SafeText};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultTrouble {
    /// There is nothing that looks like one.
    #[error("there is no result: no JSON object with a `phase_id`")]
    Missing,
    /// The only results are those of another phase.
    #[error("the result is that of another phase, `{}`", .0.line(60))]
    OtherPhase(SafeText),
    /// There is one, and something about it is wrong.
    #[error("the result is not valid: `{field}` {why}")]
    Invalid {
        /// What is wrong.
        field: String,
        /// What is wrong about it.
        why: String,
    },
}

impl ResultTrouble {
    pub(super) fn invalid(field: &str, why: impl Into<String>) -> Self {
        Self::Invalid { field: field.to_owned(), why: why.into() }
    }

    /// What whoever writes the result has to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing => {
                "write the result as JSON to the file that BACKSTOP_RESULT names, as the last thing"
            }
            Self::OtherPhase(_) => "write the result of this phase, with its own phase_id",
            Self::Invalid { .. } => "correct that field; `status` is \"complete\" or \"failed\"",
        }
    }

    /// With every secret masked.
    pub(super) fn masked(self, redactor: &Redactor) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::OtherPhase(id) => Self::OtherPhase(masked(&id, redactor)),
            Self::Invalid { field, why } => Self::Invalid { field, why: redactor.redact(&why).into_owned() },
        }
    }

    /// How much closer to a result it is than another: of several troubles, the closest is told.
    pub(super) fn closeness(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::OtherPhase(_) => 1,
            Self::Invalid { .. } => 2,
        }
    }
}
