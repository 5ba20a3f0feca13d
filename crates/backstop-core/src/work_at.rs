//! Where the work of a run is once the run has ended.

use crate::SafeText;

/// Where the work of a run is once the run has ended, and the command that fetches it where one is
/// needed.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkAt {
    /// On the user's branch.
    Landed {
        /// The branch.
        branch: SafeText,
        /// The commit at its tip.
        sha: SafeText,
    },
    /// On a ref, because the branch could not be moved.
    Kept {
        /// The ref.
        reference: SafeText,
        /// Why it is not on the branch.
        why: SafeText,
        /// The command that merges it.
        command: SafeText,
    },
    /// In the user's files, not committed.
    Uncommitted {
        /// The command or the script that commits it, where there is one.
        command: Option<SafeText>,
    },
}
