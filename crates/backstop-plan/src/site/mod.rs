//! Where phases run: in worktrees of their own ([`Worktrees`]), or in the folder itself, one at a time ([`InPlace`]).
//!
//! Both are workshops of the host, and share a [`Crew`]: the agent or command of a phase, then its gates, then a judgement.
//! It must not decide what is attempted when, and it records nothing but the processes that it starts.

mod briefing;
mod commit;
mod crew;
mod in_place;
mod judging;
mod landing;
mod log;
mod trouble;
mod worktree;

pub use commit::Commit;
pub use crew::{Crew, Equipment, Shared, Worker};
pub use in_place::InPlace;
pub use landing::Conclusion;
pub use worktree::{Ground, Worktrees};
