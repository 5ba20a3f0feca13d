//! A plan with phases side by side, a failure, a retry that knows what failed, and commits.

use crate::{DemoError, Scratch};
use std::process::{ExitStatus, Output, Stdio};

const PLAN: &str = include_str!("plan.md");
const TESTS: &str = include_str!("tests.sh");

/// Runs the plan. Two at once, however many cores there are: they sleep more than they work.
pub(crate) const RUN: &[&str] = &["run", "plan.md", "--commit", "auto", "--jobs", "2"];

/// Shows its commits.
pub(crate) const LOG: &[&str] = &["log", "--oneline", "--graph"];

/// What is worth a look afterwards, and why.
const LOOK: &[(&[&str], &str)] = &[
    (&["explain", "last"], "each attempt, what failed, which rule says so, what was decided"),
    (&["plan", "status"], "where each phase stands"),
    (&["plan", "logs", "2A", "--attempt", "1"], "what the attempt printed that failed"),
];

/// Writes the plan and its tests into a new repository.
pub(crate) fn prepare(scratch: &Scratch) -> Result<(), DemoError> {
    scratch.write("plan.md", PLAN)?;
    scratch.write("tests.sh", TESTS)?;
    scratch.make_repository()
}

/// Runs the plan as `backstop run` does, in a process of its own that has our output.
pub(crate) fn run(scratch: &Scratch) -> Result<ExitStatus, DemoError> {
    scratch.backstop(RUN).status().map_err(cannot_run)
}

/// The same with JSON as its output, which is given.
pub(crate) fn run_as_json(scratch: &Scratch) -> Result<Output, DemoError> {
    scratch.backstop(&[RUN, &["--json"]].concat()).stderr(Stdio::inherit()).output().map_err(cannot_run)
}

fn cannot_run(error: std::io::Error) -> DemoError {
    DemoError::CannotRun { program: "backstop", error }
}

/// The commits, oldest first: hash and subject.
pub(crate) fn commits(scratch: &Scratch) -> Result<Vec<(String, String)>, DemoError> {
    let log = scratch.git(&["log", "--reverse", "--format=%H %s"])?;
    let commit = |line: &str| line.split_once(' ').map(|(sha, subject)| (sha.to_owned(), subject.to_owned()));
    Ok(log.lines().filter_map(commit).collect())
}

/// The lines that a person types to look closer, and why.
pub(crate) fn look(scratch: &Scratch) -> Vec<(String, &'static str)> {
    LOOK.iter().map(|(words, why)| (scratch.typed(words), *why)).collect()
}
