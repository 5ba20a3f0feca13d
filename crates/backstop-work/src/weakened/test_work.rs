//! Whether a phase was asked to work on tests, by the words of its text.
//!
//! "All tests must pass" and "run the tests" say how the work is judged; "add tests for the parser"
//! says what is to be done. Only the second allows a phase to change test files without a remark.

/// How many words may stand between the verb and the tests: "update the old unit tests".
const WORDS_BETWEEN_MAX: usize = 6;
/// How many words after the tests are looked at: "tests that were green still pass".
const WORDS_AFTER_MAX: usize = 5;

/// What is done to a test by somebody who works on it.
const WORK: &[&str] = &[
    "add",
    "adding",
    "adapt",
    "adjust",
    "change",
    "cover",
    "convert",
    "create",
    "delete",
    "drop",
    "edit",
    "expand",
    "extend",
    "implement",
    "improve",
    "migrate",
    "modify",
    "move",
    "port",
    "provide",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "split",
    "update",
    "updating",
    "write",
    "writing",
];

/// What is said of tests that only judge the work.
const JUDGING: &[&str] =
    &["pass", "passes", "passing", "green", "succeed", "succeeds", "fail", "fails", "failing", "broken"];

/// What may stand before the tests in a title: "Unit tests for the parser".
const KINDS_OF_TESTS: &[&str] = &[
    "unit",
    "integration",
    "regression",
    "end",
    "to",
    "e2e",
    "property",
    "snapshot",
    "smoke",
    "new",
    "more",
    "the",
    "a",
    "phase",
    "task",
    "step",
];

/// Whether the text asks for work on tests.
pub(super) fn is_asked_for(text: &str) -> bool {
    let text = text.to_lowercase();
    text.split(['\n', ';', '!', '?']).flat_map(|line| line.split(". ")).any(sentence_asks)
}

fn sentence_asks(sentence: &str) -> bool {
    let words: Vec<&str> =
        sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let tests = words.iter().enumerate().filter(|(_, word)| is_test(word));
    tests.map(|(at, _)| at).any(|at| {
        let is_judging = |word: &&str| JUDGING.contains(word);
        let after = &words[at + 1..words.len().min(at + 1 + WORDS_AFTER_MAX)];
        let before = &words[at.saturating_sub(WORDS_BETWEEN_MAX)..at];
        let judges = after.iter().chain(before.last()).any(is_judging);
        let is_worked_on = before.iter().any(|word| WORK.contains(word));
        // A title: nothing but the kind of tests, or a number, stands before them.
        let is_title = words[..at]
            .iter()
            .all(|word| KINDS_OF_TESTS.contains(word) || word.chars().all(|c| c.is_ascii_digit()));
        let is_run = before.last() == Some(&"run") || before.contains(&"run") || before.contains(&"running");
        !judges && !is_run && (is_worked_on || is_title)
    })
}

fn is_test(word: &str) -> bool {
    matches!(word, "test" | "tests" | "spec" | "specs" | "coverage" | "testing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_tests_is_told_from_being_judged_by_them() {
        for text in [
            "Update the tests of the parser.",
            "Write the parser, and add unit tests for it",
            "- [ ] Unit tests for the parser",
            "3. Integration tests",
            "## Phase 2: Tests",
            "Improve coverage of the store",
            "rewrite the old spec files",
            "Rename `add` to `plus`. Adapt all tests that use it.",
            "extend the existing end-to-end tests",
        ] {
            assert!(is_asked_for(text), "{text}");
        }
        for text in [
            "Write the parser. All tests must pass.",
            "All tests pass",
            "Tests must stay green",
            "the existing tests still pass",
            "Fix the parser so that the failing tests pass",
            "run the tests before you finish",
            "Implement the cache; run `npm test`",
            "Add the route, all tests green",
            "Write the parser so that tests pass",
            "The tests fail because the date is wrong: correct the date",
            "write the parser",
            "Use the latest contest data",
            "",
        ] {
            assert!(!is_asked_for(text), "{text}");
        }
    }
}
