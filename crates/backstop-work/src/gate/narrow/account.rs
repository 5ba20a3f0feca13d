//! Whether the names of failed tests are all that failed.
//!
//! A suite that does not load, a binary that crashes or a name that was lost in other output fails
//! a run too. Where the runner counts more failures than there are names, running the named tests
//! again would prove nothing.

use super::proof::{before, without_colours};
use super::runner::Runner;

/// Whether a run that wrote this failed by so many named tests and by nothing else.
pub(super) fn all_named(runner: Runner, names: usize, text: &[u8]) -> bool {
    let text = without_colours(&String::from_utf8_lossy(text));
    let lines = || text.lines().map(str::trim);
    let sum = |starts: &str, word: &str| -> usize {
        lines().filter(|line| line.starts_with(starts)).filter_map(|line| before(line, word)).sum()
    };
    match runner {
        Runner::Cargo => {
            !text.contains("process didn't exit successfully") && sum("test result:", " failed") == names
        }
        Runner::Nextest => {
            let other = |line: &str| line.contains("timed out") || line.contains("exec failed");
            sum("Summary [", " failed") == names && !lines().any(|l| l.starts_with("Summary [") && other(l))
        }
        // It keeps its own account.
        Runner::Pytest => true,
        Runner::Go => every_package_names_one(&text),
        Runner::Jest => !text.contains("Test suite failed to run") && sum("Tests:", " failed") == names,
        Runner::Vitest => {
            let other = ["Failed Suites", "Unhandled"].iter().any(|what| text.contains(what));
            !other && sum("Tests ", " failed") == names
        }
        Runner::Mocha => sum("", " failing") == names,
    }
}

/// Whether each failed package of Go has a failed test, and none panicked.
fn every_package_names_one(text: &str) -> bool {
    let (mut named, mut packages) = (false, 0);
    for line in text.lines() {
        if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            return false;
        } else if line.starts_with("--- FAIL: ") {
            named = true;
        } else if line.starts_with("FAIL\t") {
            if !std::mem::take(&mut named) {
                return false;
            }
            packages += 1;
        } else if line.starts_with("ok  \t") || line.starts_with("?   \t") {
            named = false;
        }
    }
    packages > 0
}
