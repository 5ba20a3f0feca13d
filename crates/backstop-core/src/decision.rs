//! A decision: what to do about a fault now, and why.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What to do about a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Retry after a delay.
    Retry {
        /// The delay.
        #[serde(rename = "after_seconds", with = "seconds")]
        after: Duration,
        /// The number of the next attempt, counted from 1.
        #[serde(rename = "next_attempt")]
        attempt: u32,
        /// The number of attempts in all.
        of: u32,
    },
    /// Wait for a provider's guard and then for the delay, then retry.
    AwaitGuard {
        /// The provider.
        provider: String,
        /// The delay after the guard has opened, or on its own if there is no guard.
        #[serde(rename = "after_seconds", with = "seconds")]
        after: Duration,
        /// The number of the next attempt, counted from 1.
        #[serde(rename = "next_attempt")]
        attempt: u32,
        /// The number of attempts in all.
        of: u32,
    },
    /// Make the request smaller, then retry.
    Compress {
        /// The share of the request to keep, in percent.
        keep_percent: u8,
        /// The number of the next attempt, counted from 1.
        #[serde(rename = "next_attempt")]
        attempt: u32,
    },
    /// Use the next alternative: another model, another tool, live discovery.
    Fallback {
        /// The alternative to use.
        to: String,
    },
    /// Continue with the part that succeeded.
    UsePartial,
    /// Defer the operation until a condition is gone.
    Defer {
        /// A time in UTC, as RFC 3339 writes it, or the condition in words.
        until: String,
    },
    /// Ask a person before the operation is repeated: it may have taken effect already.
    Confirm {
        /// The command that repeats it.
        command: String,
    },
    /// Stop this task; the others continue.
    Block,
    /// Halt the run; it can be resumed.
    Halt,
    /// Return the fault to the caller.
    Surface,
}

/// An action, with the sentence that says why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The action.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in one line, with the numbers that led to it.
    pub why: String,
}

impl Action {
    /// The name as it is written in outputs.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Retry { .. } => "retry",
            Action::AwaitGuard { .. } => "await_guard",
            Action::Compress { .. } => "compress",
            Action::Fallback { .. } => "fallback",
            Action::UsePartial => "use_partial",
            Action::Defer { .. } => "defer",
            Action::Confirm { .. } => "confirm",
            Action::Block => "block",
            Action::Halt => "halt",
            Action::Surface => "surface",
        }
    }

    /// Whether the operation is attempted again.
    pub fn goes_on(&self) -> bool {
        matches!(
            self,
            Action::Retry { .. }
                | Action::AwaitGuard { .. }
                | Action::Compress { .. }
                | Action::Fallback { .. }
        )
    }
}

/// Durations are serialised as seconds.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_reads_back() {
        let decision = Decision {
            action: Action::Retry { after: Duration::from_millis(1100), attempt: 2, of: 4 },
            why: "network_transient: attempt 1 of 4".into(),
        };
        let json = serde_json::to_string(&decision).unwrap();
        assert!(json.contains("\"action\":\"retry\""), "{json}");
        assert!(json.contains("\"after_seconds\":1.1"), "{json}");
        assert_eq!(serde_json::from_str::<Decision>(&json).unwrap(), decision);
    }
}
