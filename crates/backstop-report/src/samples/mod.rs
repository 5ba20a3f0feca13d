//! One of each text: for snapshots with the seeds' examples, and for properties with hostile text.

mod alerts;
mod fresh_starts;
mod hooks;
pub(crate) mod plan_events;
pub(crate) mod plans;
pub(crate) mod tests;
mod tools;

use crate::Notice;
use backstop_core::SafeText;

/// The texts from outside that samples are made of.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    pub(crate) tool: SafeText,
    pub(crate) message: SafeText,
    pub(crate) param: (SafeText, SafeText),
    pub(crate) id: SafeText,
    pub(crate) file: SafeText,
    pub(crate) test: SafeText,
    pub(crate) command: SafeText,
    pub(crate) check: SafeText,
    pub(crate) plan: SafeText,
    pub(crate) absent: SafeText,
    pub(crate) problem: SafeText,
}

/// A notice, and what it has to name.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) notice: Notice,
    pub(crate) cause: SafeText,
    pub(crate) operation: SafeText,
    pub(crate) key: Vec<SafeText>,
}

impl Texts {
    /// The seeds' own example.
    pub(crate) fn seed() -> Self {
        Self {
            tool: "MetaMCP_fs__copy_file".into(),
            message: "EXDEV: cross-device link not permitted\n    at copy (/srv/fs.js:10)".into(),
            param: ("path".into(), "/tmp/a b".into()),
            id: "2A".into(),
            file: "src/api/auth.test.ts".into(),
            test: "validateToken".into(),
            command: "backstop run docs/feature-plan.md --commit auto --resume".into(),
            check: "npm test".into(),
            plan: "docs/feature-plan.md".into(),
            absent: "error TS2688: Cannot find type definition file for 'jest'.".into(),
            problem: "line 3: unexpected end of file".into(),
        }
    }
}
