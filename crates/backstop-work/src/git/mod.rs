//! Git: where attempts work, how they are saved, how they come together and how they reach the
//! user's branch.
//!
//! A [`Repo`] is the user's repository. A [`Slot`] is a worktree of ours, outside the user's tree,
//! in which one attempt works at a time. [`Slot::save`] keeps an attempt as a commit on a private
//! ref, [`Repo::merge`] brings two together without a checkout, [`Repo::commit_in`] makes the real
//! commit with hooks and signing, and [`Repo::land_ff`] or [`Repo::apply_tree`] bring it to the
//! user.
//!
//! It must not remove what is not saved, move a branch that has moved, overwrite what the user has
//! changed, or build a shell string from outside text. Everything is done by the `git` program,
//! version 2.38 or later, called by argv with bounded time and output. Blocking. A [`Repo`] may be
//! used by several threads at once, a [`Slot`] by one.

mod answer;
mod apply;
mod call;
mod changes;
mod child;
mod commit;
mod commit_paths;
mod conflict;
mod error;
mod filters;
mod inside;
mod interrupt;
mod land;
mod lasting;
mod look;
mod loose;
mod merge;
mod provide;
mod refs;
mod repo;
mod reset;
mod save;
mod script;
mod sha;
mod slot;
mod state;
mod submodules;
mod trouble;
mod version;
mod working;

pub use apply::Applied;
pub use call::Settings;
pub use changes::{Changed, How};
pub use commit::Committed;
pub use conflict::{Conflict, ConflictKind};
pub use error::GitError;
pub use interrupt::Interrupt;
pub use land::Landing;
pub use lasting::LastingAnswers;
pub use merge::Merged;
pub use provide::{Provided, ProvidedHow};
pub use refs::{attempt_ref, tip_ref};
pub use repo::{Head, Repo, Underway};
pub use reset::Reset;
pub use save::{OwnCommit, Saved};
pub use script::{ScriptEntry, commits_script};
pub use sha::{Sha, ShaError};
pub use slot::Slot;
pub use state::State;
pub use trouble::CommitTrouble;
