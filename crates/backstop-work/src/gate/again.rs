//! Failed tests, run again unchanged.
//!
//! Every round runs all tests that have failed so far, so that what passes has passed together.
//! Where a runner ends at the first failure, what came after it was never run: then the whole gate
//! must pass too.

use super::narrow::narrow;
use super::once::{CommandResult, GateContext};
use super::{CommandLine, Gate, GateError};
use backstop_core::{Facts, Reason, SafeText};

/// What the verdict rests on.
pub(super) struct RerunResult {
    /// The first run where it stays failed, the last where it passed.
    pub(super) once: CommandResult,
    pub(super) flaky: Vec<SafeText>,
    pub(super) reruns: u32,
}

/// Runs failed tests again, at most as often as the gate says.
pub(super) fn rerun_failed(
    gate: &Gate,
    first: CommandResult,
    context: &mut GateContext<'_>,
) -> Result<RerunResult, GateError> {
    let mut failed = first.fault.as_ref().map(|fault| fault.facts.clone()).unwrap_or_default();
    let mut text = first.text.clone();
    let mut reruns = 0;
    for _ in 0..gate.flaky {
        if context.is_stopped() {
            break;
        }
        let last = round(gate, &failed, &text, context, &mut reruns)?;
        match last.fault.as_ref().map(|fault| fault.reason) {
            None => return Ok(RerunResult { once: last, flaky: failed.failed_tests, reruns }),
            // Nobody knows now whether it would have passed.
            Some(Reason::Interrupted) => return Ok(RerunResult { once: last, flaky: Vec::new(), reruns }),
            Some(Reason::TestFailure) => {}
            // The first finding stands; that something else is wrong now does not make it better.
            Some(_) => break,
        }
        let known = failed.failed_tests.len();
        if let Some(fault) = &last.fault {
            join(&mut failed, &fault.facts);
        }
        // The account that the names are laid beside is that of the run which named the last of
        // them.
        if failed.failed_tests.len() > known {
            text = last.text;
        }
    }
    Ok(RerunResult { once: first, flaky: Vec::new(), reruns })
}

/// One round: the failed tests alone where they can be named, the whole gate where they cannot or
/// where that is not enough.
fn round(
    gate: &Gate,
    failed: &Facts,
    text: &[u8],
    context: &mut GateContext<'_>,
    reruns: &mut u32,
) -> Result<CommandResult, GateError> {
    if let Some(narrowed) = narrow(&gate.check, failed, context.run.folder, text) {
        *reruns += 1;
        let once = context.once(gate, &CommandLine::Argv(narrowed.argv), *reruns)?;
        let enough = match &once.fault {
            None => narrowed.proof.holds(&once.text) && !narrowed.stops_early,
            // A narrowed run that fails without naming a test may have failed for being narrowed.
            Some(fault) => fault.reason != Reason::TestFailure || !fault.facts.failed_tests.is_empty(),
        };
        let misused = once.fault.as_ref().is_some_and(|fault| fault.reason == Reason::InvalidUsage);
        if (enough && !misused) || context.is_stopped() {
            return Ok(once);
        }
    }
    *reruns += 1;
    context.once(gate, &gate.check, *reruns)
}

/// Adds what failed now to what failed before.
fn join(failed: &mut Facts, more: &Facts) {
    for test in &more.failed_tests {
        if !failed.failed_tests.contains(test) {
            failed.failed_tests.push(test.clone());
        }
    }
    for file in &more.files {
        if !failed.files.contains(file) {
            failed.files.push(file.clone());
        }
    }
    let known = failed.failed_tests.len() as u64;
    failed.failed_count = failed.failed_count.max(more.failed_count.filter(|count| *count > known));
}
