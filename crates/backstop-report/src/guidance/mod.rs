//! What the one who tries again is told, and what a person does when that did not help.
//!
//! Guidance goes into an agent's prompt. Names from outside stand in code spans and are cut short; longer text from
//! outside has no place here, it is fenced by whoever writes the prompt.

mod actions;
mod phrases;
mod retry;
mod work;
mod world;

pub use actions::user_actions;
pub use retry::retry_guidance;

use backstop_core::SafeText;
use std::time::Duration;

/// What is known beside the fault.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GuidanceContext {
    /// The command that shows what is wrong.
    pub check: Option<SafeText>,
    /// The command that puts right what can be put right by itself.
    pub fix: Option<SafeText>,
    /// How long the attempt ran.
    pub ran_for: Option<Duration>,
    /// What the agent claimed.
    pub claimed: Option<SafeText>,
    /// What was found instead.
    pub found: Option<SafeText>,
    /// The tasks that are not done.
    pub remaining: Vec<SafeText>,
}
