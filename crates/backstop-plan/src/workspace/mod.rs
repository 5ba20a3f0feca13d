//! Where phases run: in git worktrees ([`Worktrees`]), or in the project's folder, one at a time
//! ([`InPlace`]).
//!
//! Both are executors of the host and share a [`PhaseRunner`], which runs a phase's agent or
//! command and its gates and judges the result. This module must not decide what is attempted when,
//! and it records nothing but the processes that it starts.

mod attempt_log;
mod attempt_process;
mod baseline;
mod briefing;
mod checks;
mod commit_mode;
mod faults;
mod in_place;
mod judgement;
mod landing;
mod phase_runner;
mod sessions;
mod weakened;
mod worktree;

pub(crate) use baseline::Baselines;
pub use commit_mode::CommitMode;
pub use in_place::InPlace;
pub use landing::Conclusion;
pub use phase_runner::{Advice, Advisor, Equipment, PhaseRunner, Setup, Worker};
pub use sessions::ContinueSession;
pub use worktree::{WorktreeSetup, Worktrees};
pub(crate) use worktree::{noted_attempt, set_tip, slot_folder};

use crate::record::RunRecord;
use backstop_runtime::host::Executor;

/// An executor that runs the phases of a plan.
pub type PhaseExecutor<'e> = dyn Executor<Record = RunRecord, Conclusion = Conclusion> + 'e;

/// The rule name of a conflict's evidence, the conflicting lines. They go into the next attempt's
/// prompt.
pub(crate) const CONFLICT: &str = "git.conflict";
