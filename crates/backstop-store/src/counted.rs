//! The numbers of an event that statistics need, in columns of their own, so that a million events
//! are added up without parsing their JSON.

use backstop_core::{Action, EventKind};
use std::time::Duration;

/// A kind of event that is counted, as it is stored. A number is never given a new meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    AttemptFinished = 1,
    AttemptLost = 2,
    ErrorClassified = 3,
    DecisionMade = 4,
    RecoveryAttempted = 5,
    GuardWaited = 6,
}

impl Counted {
    /// The kind with this number.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            1 => Counted::AttemptFinished,
            2 => Counted::AttemptLost,
            3 => Counted::ErrorClassified,
            4 => Counted::DecisionMade,
            5 => Counted::RecoveryAttempted,
            6 => Counted::GuardWaited,
            _ => return None,
        })
    }
}

/// What an event adds to the statistics, as its columns hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Numbers {
    /// The number of its kind; `None` if it is not counted.
    pub(crate) counted: Option<i64>,
    /// Whether it succeeded.
    pub(crate) ok: Option<bool>,
    /// How long it took, or how long was or is to be waited, in milliseconds.
    pub(crate) ms: Option<i64>,
}

impl Numbers {
    /// The numbers of an event.
    pub(crate) fn of(kind: &EventKind) -> Self {
        let (counted, ok, ms) = match kind {
            EventKind::AttemptFinished { success, duration_ms, .. } => {
                (Counted::AttemptFinished, Some(*success), Some(*duration_ms))
            }
            EventKind::AttemptLost { .. } => (Counted::AttemptLost, None, None),
            EventKind::ErrorClassified { .. } => (Counted::ErrorClassified, None, None),
            EventKind::DecisionMade { decision, .. } => {
                (Counted::DecisionMade, None, wait_of(&decision.action).map(millis))
            }
            EventKind::RecoveryAttempted { success, .. } => {
                (Counted::RecoveryAttempted, Some(*success), None)
            }
            EventKind::GuardWaited { waited_ms, .. } => (Counted::GuardWaited, None, Some(*waited_ms)),
            _ => return Self::default(),
        };
        let ms = ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        Self { counted: Some(counted as i64), ok, ms }
    }
}

fn wait_of(action: &Action) -> Option<Duration> {
    match action {
        Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => Some(*after),
        _ => None,
    }
}

/// Milliseconds, rounded as the migration of older databases rounds them.
fn millis(of: Duration) -> u64 {
    u64::try_from(of.saturating_add(Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX)
}
