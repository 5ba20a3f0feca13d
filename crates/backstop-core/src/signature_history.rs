//! What retries have taught about one message.

use crate::{Reason, Timestamp};

/// The history of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHistory {
    /// The message without its variable parts.
    pub signature: String,
    /// The reason.
    pub reason: Reason,
    /// How often it was seen.
    pub seen: u64,
    /// How often it was retried.
    pub retried: u64,
    /// How often a retry helped.
    pub cured: u64,
    /// When it was first seen.
    pub first_at: Timestamp,
    /// When it was last seen.
    pub last_at: Timestamp,
}
