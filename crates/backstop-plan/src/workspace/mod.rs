//! Where phases run: in worktrees of their own ([`Worktrees`]), or in the folder itself, one at a time ([`InPlace`]).
//!
//! Both are workshops of the host, and share a [`PhaseRunner`]: the agent or command of a phase, then its gates, then a judgement.
//! It must not decide what is attempted when, and it records nothing but the processes that it starts.

mod attempt_log;
mod briefing;
mod commit_mode;
mod faults;
mod in_place;
mod judgement;
mod landing;
mod phase_runner;
mod worktree;

pub use commit_mode::CommitMode;
pub use in_place::InPlace;
pub use landing::Conclusion;
pub use phase_runner::{Equipment, PhaseRunner, Worker};
pub use worktree::{WorktreeSetup, Worktrees};

use crate::record::RunRecord;
use backstop_runtime::host::Executor;

/// Runs phases: what the host of a plan's run is given.
pub type PhaseExecutor<'e> = dyn Executor<Record = RunRecord, Conclusion = Conclusion> + 'e;

/// The evidence of a conflict: the lines that do not go together. The next attempt is told of it.
pub(crate) const CONFLICT: &str = "git.conflict";
