//! What cleaning a store removed.

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// The number of runs.
    pub runs: u64,
    /// The number of events.
    pub events: u64,
    /// The size of the database and its log before.
    pub bytes_before: u64,
    /// The size of the database and its log after.
    pub bytes_after: u64,
}
