//! What a person does when retries did not help.

use backstop_core::{Fault, Reason};

/// What a person does when retries did not help, one step each. Never empty.
pub fn user_actions(fault: &Fault) -> &'static [&'static str] {
    match fault.reason {
        Reason::TestFailure => &[
            "Run the tests several times unchanged: some may be flaky",
            "Ask whether the tests still describe what the code should do",
        ],
        Reason::LintError => &[
            "Read the rules that are broken, and what they protect from",
            "Switch off a rule that does not suit the project, in its configuration",
            "Look for two configurations that contradict each other",
        ],
        Reason::TypecheckError => &[
            "Compare the type definitions with their use",
            "Look for packages of type definitions that are not installed",
            "Check the type checker's configuration: tsconfig.json, mypy.ini, pyproject.toml",
        ],
        Reason::FormatError => &[
            "Run the formatter by hand and look at what it changes",
            "Check that the agent and the gate use the same version and configuration",
        ],
        Reason::Timeout => &[
            "Raise the time limit, if the work deserves it",
            "Split the phase into smaller ones",
            "Look for an endless loop, or for something that waits for input",
        ],
        Reason::VerificationMismatch => &[
            "Read the agent's log, from the last gate it ran",
            "Look for races: things that pass or fail by their order",
            "Check that nothing outside the phase changed in between",
        ],
        Reason::TaskIncomplete => &[
            "See which tasks are open, and whether the plan says clearly what they ask",
            "Split the phase, or give the open tasks a phase of their own",
        ],
        Reason::ParseError => &[
            "Look at the raw result in the log: it may have been cut short",
            "Check that the agent is told the form in which it has to answer",
        ],
        Reason::FileConflict => &[
            "Merge the changes by hand",
            "To avoid it next time, make one phase depend on the other in the plan, or split the file",
        ],
        // What to install is the fault's own suggestion, and comes before this.
        Reason::DependencyMissing => &["Check that the right environment is active"],
        // The taxonomy ends these two with "then run it again": that command is shown after them.
        Reason::ServiceDown => &["Start the service", "Check its address in the configuration"],
        Reason::DiskFull => &["Free some space on the file system that is named"],
        _ => fault.next_steps(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_something_to_do() {
        for reason in Reason::all() {
            let fault = Fault::new(reason);
            assert!(!user_actions(&fault).is_empty(), "{reason}");
            assert!(user_actions(&fault).iter().all(|action| !action.ends_with('.')), "{reason}");
        }
    }
}
