//! What an agent is asked to do: everything that its prompt is made of.

use super::RetryContext;
use backstop_core::SafeText;

/// A task of a phase, as the plan has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub text: SafeText,
    /// Whether the plan has it ticked already.
    pub done: bool,
}

/// A gate that the work must pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateToRun {
    /// Its name: `lint`, `test`.
    pub name: String,
    /// The command that checks.
    pub check: SafeText,
    /// The command that puts right what can be put right by itself.
    pub fix: Option<SafeText>,
}

/// What the prompt of one attempt is made of.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    /// The phase's id, as the plan writes it: `2A`.
    pub phase_id: String,
    /// The phase's key, as it is compared and as the result names it: `2a`.
    pub phase_key: String,
    /// The phase's name.
    pub phase_name: SafeText,
    /// Where the plan is.
    pub plan: SafeText,
    /// The section of the plan that this phase is.
    pub section: SafeText,
    /// Its tasks, in order; results number them from 1.
    pub tasks: Vec<Task>,
    /// The gates that will be run on the work.
    pub gates: Vec<GateToRun>,
    /// Phases that may run at the same time: ids and names.
    pub siblings: Vec<SafeText>,
    /// Files that the section names.
    pub files: Vec<SafeText>,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
    /// Of how many.
    pub of: u32,
    /// What the last attempt failed of.
    pub retry: Option<RetryContext>,
    /// The conflicting hunks, where finished work could not be integrated.
    pub conflict: Option<SafeText>,
    /// What it should know beyond the plan: what others delivered, what failed elsewhere.
    pub context: Option<SafeText>,
    /// Where the result goes: [`result_file`](super::result_file) of the attempt's scratch folder.
    pub result_file: SafeText,
}
