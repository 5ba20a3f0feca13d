//! A question about a fault.

use crate::{Class, Fault, Reason, UnknownReason, from_seed_name};
use std::str::FromStr;

/// Something that holds for some faults: written `retryable`, as a class or as a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Another attempt may help.
    Retryable,
    /// It is of this class.
    Class(Class),
    /// It is of this reason.
    Reason(Reason),
}

impl FromStr for Condition {
    type Err = UnknownReason;

    fn from_str(word: &str) -> Result<Self, UnknownReason> {
        const CLASSES: [Class; 4] = [Class::Transient, Class::Permanent, Class::User, Class::System];
        if word == "retryable" {
            return Ok(Self::Retryable);
        }
        if let Some(class) = CLASSES.into_iter().find(|class| class.name() == word) {
            return Ok(Self::Class(class));
        }
        from_seed_name(word).map_or_else(|| word.parse(), Ok).map(Self::Reason)
    }
}

impl Condition {
    /// Whether it holds for this fault.
    pub fn holds(&self, fault: &Fault) -> bool {
        match self {
            Self::Retryable => fault.retryable,
            Self::Class(class) => fault.class == *class,
            Self::Reason(reason) => fault.reason == *reason,
        }
    }
}
