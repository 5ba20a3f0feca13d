//! A test command narrowed to the tests that failed.
//!
//! Names of tests come from outside. They go to the runner as arguments, never through a shell and
//! never as a flag; where the runner takes a pattern they are escaped. What cannot be narrowed so
//! is run again as a whole: that costs time and is never wrong. A narrowed run that passes is
//! believed only where its output proves that the tests were run.
//!
//! It must not run anything.

mod account;
mod proof;
mod runner;
mod write;

use super::CommandLine;
use backstop_core::Facts;
use std::path::Path;

pub(super) use proof::Proof;

/// With more failed tests than this, the whole gate is run again. The classifier keeps no more than
/// this many names.
const NAMES_MAX: usize = 99;
/// With more bytes of names than this, too.
const NAMES_BYTES_MAX: usize = 64 << 10;

/// A command that runs failed tests only.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Narrowed {
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// What its output must show for a pass to count.
    pub(super) proof: Proof,
    /// Whether the runner may have ended at the first failure, so that other tests were never run.
    pub(super) stops_early: bool,
}

/// The command narrowed to what failed, where that can be done safely. `text` is what the failed
/// run wrote.
pub(super) fn narrow(check: &CommandLine, facts: &Facts, folder: &Path, text: &[u8]) -> Option<Narrowed> {
    let found = runner::find(check.words()?, folder)?;
    let names = names(facts)?;
    if !account::all_named(found.runner, names.len(), text) {
        return None;
    }
    let files: Vec<&str> = facts.files.iter().map(backstop_core::SafeText::raw).collect();
    write::narrowed(&found, &names, &files, text)
}

/// The names of all failed tests. Nothing, where not all are known or one cannot be an argument.
fn names(facts: &Facts) -> Option<Vec<&str>> {
    let names: Vec<&str> = facts.failed_tests.iter().map(|name| name.raw().trim()).collect();
    let known = facts.failed_count.is_none_or(|count| count <= names.len() as u64);
    let sayable = |name: &&str| !name.is_empty() && !name.chars().any(char::is_control);
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    let fits = !names.is_empty() && names.len() <= NAMES_MAX && bytes <= NAMES_BYTES_MAX;
    (known && fits && names.iter().all(sayable)).then_some(names)
}

#[cfg(test)]
mod tests;
