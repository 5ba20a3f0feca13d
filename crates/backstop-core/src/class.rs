//! The three scales on which a reason stands: class, severity, retry.

use serde::{Deserialize, Serialize};

/// Who or what has to change before the failure goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Nothing: it passes by itself.
    Transient,
    /// The work.
    Permanent,
    /// The person or agent who asked.
    User,
    /// The machine or a service on it.
    System,
}

/// How bad it is when it ends the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Tell the user.
    Low,
    /// Record, and retry where that helps.
    Medium,
    /// Alert, when it ended a run or a task.
    High,
    /// Alert, and stop new work.
    Critical,
}

/// Whether and how the same operation may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// The same again.
    Plain,
    /// Again, but different: with error context, compressed, narrower.
    Changed,
    /// When a condition is gone.
    Later,
    /// Not at all.
    No,
}

macro_rules! names {
    ($type:ty { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $type {
            /// The name as it is written in outputs.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names!(Class { Transient = "transient", Permanent = "permanent", User = "user", System = "system" });
names!(Severity { Low = "low", Medium = "medium", High = "high", Critical = "critical" });
names!(Retry { Plain = "plain", Changed = "changed", Later = "later", No = "no" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_serde_agree() {
        for class in [Class::Transient, Class::Permanent, Class::User, Class::System] {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
        for severity in [Severity::Low, Severity::Medium, Severity::High, Severity::Critical] {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.name());
        }
        for retry in [Retry::Plain, Retry::Changed, Retry::Later, Retry::No] {
            assert_eq!(serde_json::to_value(retry).unwrap(), retry.name());
        }
    }
}
