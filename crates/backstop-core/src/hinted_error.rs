//! Errors that people meet: what kind of trouble it is, and what to type next.

use crate::deferred::DeferredIdError;
use crate::duration::QuantityError;
use crate::{IdError, UnknownReason};
use std::error::Error;

/// What kind of trouble an error is. The command line has an exit code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something on this machine is not as it should be.
    Failed,
    /// What was typed or written is not understood.
    Usage,
    /// Not now: the same may work later.
    Deferred,
}

/// An error that is shown to a person, with what to type next.
pub trait HintedError: Error + Send + Sync + 'static {
    /// What kind of trouble it is.
    fn kind(&self) -> ErrorKind;

    /// What to type next, the best first.
    fn hints(&self) -> Vec<String>;

    /// Whether each line of the message is ours, so that its line ends are shown.
    fn is_multiline(&self) -> bool {
        false
    }
}

impl HintedError for UnknownReason {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["`backstop reasons` lists them all; `backstop rules show RULE` shows a rule".to_owned()]
    }
}

impl HintedError for IdError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Run { .. } => vec!["`backstop runs` lists the runs of this project".to_owned()],
            Self::Name { .. } => vec!["for example: nightly, team-a, openai".to_owned()],
        }
    }
}

impl HintedError for DeferredIdError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["`backstop deferred list` lists deferred work".to_owned()]
    }
}

impl HintedError for QuantityError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["for example: 30 (seconds), 10m, 1h30m, 7d".to_owned()]
    }
}
