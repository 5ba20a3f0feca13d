//! What the policy says now, and why.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What to do about a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Try again after this long, as this attempt.
    Retry {
        /// How long to wait first.
        after: Duration,
        /// The number of the next attempt, counted from 1.
        attempt: u32,
    },
    /// Wait for the guard of this provider, then try again.
    AwaitGuard {
        /// Whose guard.
        provider: String,
    },
    /// Make the request smaller, then try again.
    Compress {
        /// How much of it should remain, in percent.
        keep_percent: u8,
    },
    /// Use the next alternative: another model, another tool, live discovery.
    Fallback {
        /// What to use instead.
        to: String,
    },
    /// Go on with what there is.
    UsePartial,
    /// Put it aside until a condition is gone.
    Defer {
        /// What to wait for.
        until: String,
    },
    /// Ask before it is repeated: it may have happened already.
    Confirm {
        /// The command that repeats it.
        command: String,
    },
    /// Stop this task, let the others go on.
    Block,
    /// Stop the run, resumable.
    Halt,
    /// Give it to the caller as it is.
    Surface,
}

/// An action with its reason: the numbers that led to it, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in one line.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_reads_back() {
        let decision = Decision {
            action: Action::Retry { after: Duration::from_millis(1100), attempt: 2 },
            why: "network_transient: attempt 1 of 4".into(),
        };
        let json = serde_json::to_string(&decision).unwrap();
        assert!(json.contains("\"action\":\"retry\""), "{json}");
        assert_eq!(serde_json::from_str::<Decision>(&json).unwrap(), decision);
    }
}
