//! Drift: the messages that no rule recognises, grouped by signature, and whether their share has
//! grown.

use crate::{RunId, SafeText, Share, Timestamp};

/// Fewer unknown errors than this in the last day are no spike.
pub const SPIKE_UNKNOWN_MIN: u64 = 5;

/// With fewer classified errors than this in the days before, there is nothing to compare with.
pub const SPIKE_PAST_MIN: u64 = 10;

/// The share must have grown by at least this factor,
const SPIKE_TIMES: u64 = 2;

/// and by at least this many percentage points.
const SPIKE_POINTS: u64 = 10;

/// A group of unrecognised messages with the same signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownGroup {
    /// The message without its variable parts.
    pub signature: String,
    /// The number of messages.
    pub count: u64,
    /// The time of the first.
    pub first_at: Timestamp,
    /// The time of the last.
    pub last_at: Timestamp,
    /// The last message, as it was.
    pub example: SafeText,
    /// The operation that printed it.
    pub operation: SafeText,
    /// The run of the last message.
    pub run: RunId,
}

impl UnknownGroup {
    /// Adds a message to the group and makes it the example.
    pub fn join(&mut self, other: UnknownGroup) {
        let count = self.count + other.count;
        let first_at = self.first_at.min(other.first_at);
        if other.last_at >= self.last_at {
            *self = other;
        }
        (self.count, self.first_at) = (count, first_at);
    }
}

/// The unrecognised messages, grouped, and their share over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// The groups, most frequent first.
    pub groups: Vec<UnknownGroup>,
    /// The number of unknown errors in no group, because there are too many groups.
    pub ungrouped: u64,
    /// The share in the last day.
    pub recent: Share,
    /// The share in the days before.
    pub before: Share,
}

impl Drift {
    /// Whether the last day has a spike of `unknown`: enough of them, a share that has at least
    /// doubled, and grown by ten percentage points or more. Without earlier errors there is no
    /// spike.
    pub fn is_spike(&self) -> bool {
        let (recent, before) = (self.recent, self.before);
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let doubled = wide(recent.unknown, before.errors)
            >= wide(before.unknown, recent.errors).saturating_mul(u128::from(SPIKE_TIMES));
        let grown = wide(recent.unknown, before.errors) * 100
            >= wide(before.unknown, recent.errors) * 100
                + wide(recent.errors, before.errors) * u128::from(SPIKE_POINTS);
        recent.unknown >= SPIKE_UNKNOWN_MIN && before.errors >= SPIKE_PAST_MIN && doubled && grown
    }
}
