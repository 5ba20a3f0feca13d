//! What an agent says of its own work.

/// What an agent says of its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// All of it is done.
    Complete,
    /// It is not, or cannot be.
    Failed,
}
