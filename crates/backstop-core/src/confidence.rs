//! How sure the classifier is of a reason.

use serde::{Deserialize, Serialize};
use std::fmt;

/// From this share on, in percent, an answer is `high`.
const HIGH_PERCENT: u8 = 88;
/// From this share on, in percent, an answer is `medium`.
const MEDIUM_PERCENT: u8 = 65;

/// How sure the classifier is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceLevel {
    /// A guess: "looks like".
    Low,
    /// Likely.
    Medium,
    /// As good as certain.
    High,
}

impl ConfidenceLevel {
    /// Its name: `low`, `medium` or `high`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for ConfidenceLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// How sure the classifier is of a reason: the share of failures like this one, of tools that it
/// was not written for, for which its answer was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "Shown", from = "Shown")]
pub struct Confidence {
    percent: u8,
}

/// A confidence as JSON has it. The level follows from the score and is not read.
#[derive(Serialize, Deserialize)]
struct Shown {
    #[serde(default = "certain_level")]
    level: ConfidenceLevel,
    score: f64,
}

fn certain_level() -> ConfidenceLevel {
    ConfidenceLevel::High
}

impl Confidence {
    /// Of what was reported or derived, and not guessed.
    pub const CERTAIN: Self = Self { percent: 100 };

    /// A confidence of so many percent, at most 100.
    pub fn of_percent(percent: u8) -> Self {
        Self { percent: percent.min(100) }
    }

    /// In percent, from 0 to 100.
    pub fn percent(self) -> u8 {
        self.percent
    }

    /// In one word.
    pub fn level(self) -> ConfidenceLevel {
        match self.percent {
            HIGH_PERCENT.. => ConfidenceLevel::High,
            MEDIUM_PERCENT.. => ConfidenceLevel::Medium,
            _ => ConfidenceLevel::Low,
        }
    }

    /// Whether it was reported or derived: nothing was guessed.
    pub fn is_certain(&self) -> bool {
        *self == Self::CERTAIN
    }

    /// Whether this is a guess.
    pub fn is_low(self) -> bool {
        self.level() == ConfidenceLevel::Low
    }

    /// This, or just below `high` where it is more.
    #[must_use]
    pub fn at_most_medium(self) -> Self {
        Self { percent: self.percent.min(HIGH_PERCENT - 1) }
    }
}

/// What an older journal does not say was not measured then, and was acted on as it stood.
impl Default for Confidence {
    fn default() -> Self {
        Self::CERTAIN
    }
}

impl From<Confidence> for Shown {
    fn from(confidence: Confidence) -> Self {
        Self { level: confidence.level(), score: f64::from(confidence.percent) / 100.0 }
    }
}

impl From<Shown> for Confidence {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is between 0 and 100.
    fn from(shown: Shown) -> Self {
        Self { percent: (shown.score * 100.0).round().clamp(0.0, 100.0) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Reason, Retry};

    #[test]
    fn a_confidence_is_a_word_and_a_number() {
        let shown = |percent| serde_json::to_string(&Confidence::of_percent(percent)).unwrap();
        assert_eq!(shown(93), r#"{"level":"high","score":0.93}"#);
        assert_eq!(shown(70), r#"{"level":"medium","score":0.7}"#);
        assert_eq!(shown(12), r#"{"level":"low","score":0.12}"#);
        for percent in 0..=100 {
            let back: Confidence = serde_json::from_str(&shown(percent)).unwrap();
            assert_eq!(back.percent(), percent);
        }
        assert_eq!(Confidence::CERTAIN.at_most_medium().level(), ConfidenceLevel::Medium);
        // A number that is none is no confidence.
        let hostile: Confidence = serde_json::from_str(r#"{"level":"high","score":-1e300}"#).unwrap();
        assert!(hostile.is_low());
    }

    #[test]
    fn a_fault_of_an_older_journal_has_no_confidence_and_is_read() {
        let mut fault = Fault::new(Reason::Crash);
        fault.set_confidence(Confidence::of_percent(93));
        let mut old = serde_json::to_value(fault).unwrap();
        old.as_object_mut().unwrap().remove("confidence").unwrap();
        let fault: Fault = serde_json::from_value(old).unwrap();
        assert_eq!(fault.confidence, Confidence::CERTAIN);
    }

    #[test]
    fn a_guess_is_never_a_plain_retry() {
        for reason in Reason::all() {
            let mut fault = Fault::new(reason);
            fault.set_confidence(Confidence::of_percent(40));
            assert!(!fault.retryable, "{reason}");
            assert_ne!(fault.retry, Retry::Plain, "{reason}");
            assert_eq!(
                fault.facts.should_retry,
                Some(false).filter(|_| reason.retryable() || reason.retry() == Retry::Plain)
            );
            let mut sure = Fault::new(reason);
            sure.set_confidence(Confidence::of_percent(95));
            assert_eq!(sure.retryable, reason.retryable());
        }
    }
}
