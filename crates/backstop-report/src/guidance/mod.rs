//! Guidance: what an agent is told before a retry, and what a person does when retries did not
//! help.
//!
//! Guidance goes into an agent's prompt. Names from outside stand in code spans and are cut short.
//! Longer text from outside must not be part of it: whoever writes the prompt fences it.

mod actions;
mod phrases;
mod retry;
mod work;
mod world;

pub use actions::user_actions;
pub use retry::{fault_guidance, retry_guidance};

use backstop_core::SafeText;
use std::time::Duration;

/// What guidance may use beside the fault.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GuidanceContext {
    /// The command that checks.
    pub check: Option<SafeText>,
    /// The command that fixes what can be fixed automatically.
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
