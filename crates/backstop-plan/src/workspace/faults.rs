//! Errors of git and of recorded state, as faults.

use backstop_core::{Fault, Reason, SafeText};
use backstop_work::git::{CommitTrouble, GitError};

/// The fault of a failed git command: `interrupted`, `disk_full`, `permission_denied` where the
/// file system is read-only, or `vcs_error`.
pub(super) fn git_fault(error: &GitError) -> Box<Fault> {
    let full = error.to_string().contains("No space left on device");
    let mut fault = Fault::new(match error {
        GitError::Interrupted { .. } => Reason::Interrupted,
        GitError::NoRoom { .. } => Reason::DiskFull,
        GitError::ReadOnly { .. } => Reason::PermissionDenied,
        _ if full => Reason::DiskFull,
        _ => Reason::VcsError,
    });
    fault.cause = Some(SafeText::new(error.to_string()));
    fault.suggested_action = SafeText::new(error.hint());
    Box::new(fault)
}

pub(super) fn commit_fault(trouble: &CommitTrouble) -> Box<Fault> {
    if let CommitTrouble::Git(error) = trouble {
        return git_fault(error);
    }
    let mut fault = Fault::new(Reason::VcsError);
    fault.cause = Some(SafeText::new(trouble.to_string()));
    fault.suggested_action = SafeText::new(trouble.hint());
    Box::new(fault)
}

pub(super) fn state_invalid(what: &str) -> Box<Fault> {
    let mut fault = Fault::new(Reason::StateInvalid);
    fault.cause = Some(SafeText::new(what));
    Box::new(fault)
}
