//! What came of a gate.

use backstop_core::{Fault, Reason, SafeText};
use std::time::Duration;

/// What came of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The gate's name.
    pub gate: String,
    /// Whether it passed, if need be when failed tests were run again.
    pub passed: bool,
    /// What it is, where it failed.
    pub fault: Option<Fault>,
    /// What failed, one by one, where that can be told.
    pub failures: Option<Vec<SafeText>>,
    /// Where it passes as no worse than what was there before: how many failures are known from
    /// then.
    pub known_failures: u64,
    /// Tests that failed and then passed, unchanged. Empty where it failed.
    pub flaky: Vec<SafeText>,
    /// How often something was run again.
    pub reruns: u32,
    /// How long all of it ran.
    pub duration: Duration,
    /// The exit code that the verdict rests on, where there is one.
    pub exit: Option<i64>,
    /// The end of what it wrote, both streams as they came. As it came: not masked, not escaped.
    pub tail: Vec<u8>,
    /// The command that checks, as one would type it.
    pub check: String,
    /// The command that puts it right, where there is one.
    pub fix: Option<String>,
}

impl Checked {
    /// That it failed and then passed unchanged, as a fault to be recorded. Nothing, where it did
    /// not.
    pub fn flaky_fault(&self) -> Option<Fault> {
        if !self.passed || self.reruns == 0 {
            return None;
        }
        let mut fault = Fault::new(Reason::FlakyTest);
        let what = match self.flaky.as_slice() {
            [] => format!("gate `{}`", self.gate),
            [one] => one.raw().to_owned(),
            [first, rest @ ..] => format!("{} and {} more", first.raw(), rest.len()),
        };
        fault.cause = Some(SafeText::new(format!("{what} failed, then passed unchanged")));
        fault.facts.failed_tests.clone_from(&self.flaky);
        Some(fault)
    }
}
