//! Lines of a log that speak of trouble but not of a failure: names of tests that passed, attempts
//! that are made again.

/// How a line begins that tells of a test that passed.
const PASSED_BEGINNINGS: &[&str] =
    &["ok ", "\u{2713} ", "\u{2714} ", "\u{221a} ", "PASS ", "PASS: ", "--- PASS", "[       OK ]", "PASSED "];
/// How such a line ends, without the time that may follow.
const PASSED_ENDINGS: &[&str] =
    &[" ok", " OK", " PASSED", " passed", " PASS", ": ok", ": OK", "... yes", "... no"];
/// What says that an attempt is made again, in lower case.
const AGAIN: &[&str] = &[
    "retrying",
    "will retry",
    "will be retried",
    "trying again",
    "retries left",
    "retries remaining",
    "attempts left",
    "attempts remaining",
    "before retry",
    "next attempt",
];

/// Whether a line tells of something that passed or is tried again.
pub(crate) fn is_of_no_failure(line: &str) -> bool {
    let text = without_time(line.trim());
    let passed = PASSED_BEGINNINGS.iter().any(|start| text.starts_with(start))
        || PASSED_ENDINGS.iter().any(|end| text.ends_with(end));
    let lower = line.to_ascii_lowercase();
    passed || AGAIN.iter().any(|words| lower.contains(words))
}

/// A line without the time in parentheses or brackets at its end: `(0.06s)`, `[12 ms]`.
fn without_time(line: &str) -> &str {
    let Some(open) = line.rfind(['(', '[']) else { return line };
    let inner = line[open + 1..].trim_end_matches([')', ']', '.']);
    let is_time = inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.chars().all(|c| c.is_ascii_digit() || " .,msinec".contains(c));
    if is_time { line[..open].trim_end() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_and_what_is_tried_again_is_no_failure() {
        for line in [
            "ok 12 - connection refused is reported",
            "  \u{2713} handles a timeout (12ms)",
            "Trailing whitespace inside paragraph:    OK",
            "handles a file with syntax errors just fine:   OK (0.06s)",
            "test net::connection_reset ... ok",
            "curl: (28) timed out; retrying in 5 seconds",
            "npm WARN ECONNRESET, 2 retries left",
        ] {
            assert!(is_of_no_failure(line), "{line}");
        }
        for line in [
            "not ok 3 - connection refused",
            "curl: (7) Connection refused",
            "FAIL src/a.test.js (3.2s)",
            "error: it is not ok to do this here",
            "",
        ] {
            assert!(!is_of_no_failure(line), "{line}");
        }
    }
}
