//! Counts at the end: `3 errors, 2 warnings`, `2 of 10 tests failed`,
//! `4 files would be reformatted`.

use super::words::{has_any, number};
use backstop_core::Reason;

/// Words in a command that say that it checks, and what it checks.
const LINTS: &[&str] = &["lint", "check", "vet", "analyze", "analyse", "audit", "scan"];
const TESTS: &[&str] = &["test", "spec", "tests"];

/// What a lower-case line counts. Counts of zero say nothing.
pub(super) fn read(line: &str, command: &str) -> Option<(&'static str, Reason)> {
    if [
        "would be reformatted",
        "would reformat",
        "not formatted",
        "needs formatting",
        "need formatting",
        "style issues",
    ]
    .iter()
    .any(|words| line.contains(words))
        && !line.contains("0 files would")
    {
        return Some(("grammar.count_formatted", Reason::FormatError));
    }
    let failed = count(line, &["failed", "failures", "failure", "failing", "unexpected failures", "not ok"]);
    let about_tests = has_any(
        line,
        &[
            "test",
            "tests",
            "passed",
            "passes",
            "specs",
            "examples",
            "scenarios",
            "assertions",
            "suites",
            "cases",
            "ran",
            "run",
        ],
    );
    if failed && (about_tests || has_any(command, TESTS)) {
        return Some(("grammar.count_tests", Reason::TestFailure));
    }
    if count(
        line,
        &[
            "problem",
            "problems",
            "issue",
            "issues",
            "violation",
            "violations",
            "offense",
            "offenses",
            "warnings",
            "warning",
            "findings",
            "vulnerabilities",
            "finding",
            "code warnings",
        ],
    ) {
        return Some(("grammar.count_findings", Reason::LintError));
    }
    if count(line, &["error", "errors", "fatal errors", "fatal error"]) {
        let reason = if LINTS.iter().any(|word| command.contains(word)) {
            Reason::LintError
        } else {
            Reason::CompileError
        };
        return Some(("grammar.count_errors", reason));
    }
    None
}

/// Whether a number above zero goes before one of these nouns, or after it and a colon.
fn count(line: &str, nouns: &[&str]) -> bool {
    let mut words = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '[' | ']' | '='))
        .filter(|w| !w.is_empty())
        .peekable();
    let is_noun = |word: &str| nouns.contains(&word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    while let Some(word) = words.next() {
        let value = number(word).filter(|(_, rest)| rest.is_empty()).map(|(n, _)| n);
        if value.is_some_and(|n| n > 0) && words.peek().is_some_and(|next| is_noun(next)) {
            return true;
        }
        let told = is_noun(word) && word.ends_with(':');
        if told && words.peek().and_then(|next| number(next)).is_some_and(|(n, _)| n > 0) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_by_what_they_count() {
        let reason = |line: &str, command: &str| read(line, command).map(|(_, reason)| reason);
        assert_eq!(reason("2 of 10 tests failed, 8 passed", "x"), None);
        assert_eq!(reason("10 tests, 2 failed", "x"), Some(Reason::TestFailure));
        assert_eq!(reason("run: 2 failures: 1 errors: 0", "x"), Some(Reason::TestFailure));
        assert_eq!(reason("7 warnings printed", "x"), Some(Reason::LintError));
        assert_eq!(reason("2 errors generated.", "frobc a.c"), Some(Reason::CompileError));
        assert_eq!(reason("2 errors", "frob lint a.c"), Some(Reason::LintError));
        assert_eq!(reason("0 errors, 0 warnings", "x"), None);
        assert_eq!(reason("3 files would be reformatted", "x"), Some(Reason::FormatError));
    }
}
