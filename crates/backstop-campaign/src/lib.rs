//! Campaigns: an objective becomes tasks with proofs, tasks are worked on in the order of their
//! dependencies, and every failure is a state.
//!
//! What this crate is for: what a campaign does next, and carrying it out as stages of phases. What
//! it must not do: print, read the environment or a clock, retry by itself, or touch git. Attempts,
//! gates, worktrees and the host are those of plans.
//!
//! - [`state`]: the states, which may follow which, and what ERROR does about each error type.
//! - [`step`]: where a campaign goes from a state, given what came of its work.
//! - [`explore`], [`planner_answer`], [`task`]: what explorers and planners say, read and checked.
//! - [`record`]: what the events of a campaign add up to. [`phases`]: explorers, planners and tasks
//!   as phases. [`replan`]: another plan, merged whole or not at all.
//! - [`drive`]: carries it out, state by state. [`knowledge`]: what builders are told. [`lessons`]:
//!   what the next campaign is.
//! - [`changes`]: what a person changes: answers, retries, blocks, a re-plan.
//! - [`present`]: a campaign as values that reports render.
//! - [`machine`]: the same decisions as JSON, for other harnesses (`backstop machine`).
//!
//! The three types that matter: [`state::State`], [`task::TaskPlan`] and
//! [`record::CampaignRecord`].

pub mod changes;
pub mod drive;
mod error;
pub mod explore;
pub mod knowledge;
pub mod lessons;
pub mod machine;
pub mod phases;
pub mod planner_answer;
pub mod present;
mod prompts;
pub mod record;
pub mod replan;
mod stage;
pub mod state;
pub mod step;
pub mod task;

pub use error::CampaignError;
