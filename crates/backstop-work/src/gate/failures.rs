//! What failed in a gate, one by one, so that two runs of it can be compared: a tree that was red
//! before somebody worked on it is judged by what got worse.
//!
//! Failed tests are told apart by name, findings of formatters by file, other findings by their
//! lines without numbers. It must not guess: where not everything that failed is named, nothing is
//! compared.

use backstop_core::{Fault, Reason, SafeText};
use std::collections::BTreeMap;

/// How many failures of one gate are remembered. With more of them nothing is compared.
const FAILURES_MAX: usize = 400;
/// How much of a finding's line is compared, in characters.
const LINE_CHARS_MAX: usize = 200;
/// How much of a gate's output is read for findings, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Words of a line that reports a finding.
const FINDING_WORDS: [&str; 4] = ["error", "warning", "fail", "✖"];

/// A gate's failures beside those of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// Nothing fails that did not fail before.
    NoWorse {
        /// How many failures are known from before.
        known: usize,
    },
    /// These are new.
    Worse(Vec<SafeText>),
    /// The failures of one of the two cannot be told apart.
    Unknown,
}

/// What failed, one by one. Nothing where that cannot be told. A finding that occurs more than once
/// is in it as often.
pub(super) fn failures(fault: &Fault, text: &[u8]) -> Option<Vec<SafeText>> {
    let facts = &fault.facts;
    let is_whole = |names: &[SafeText]| {
        !names.is_empty() && facts.failed_count.is_none_or(|count| count <= names.len() as u64)
    };
    let found = match fault.reason {
        Reason::TestFailure if is_whole(&facts.failed_tests) => facts.failed_tests.clone(),
        Reason::TestFailure => return None,
        Reason::FormatError if is_whole(&facts.files) => facts.files.clone(),
        Reason::LintError | Reason::TypecheckError | Reason::CompileError | Reason::FormatError => {
            findings(text)
        }
        _ => return None,
    };
    (!found.is_empty() && found.len() <= FAILURES_MAX).then_some(found)
}

/// The lines that report findings, without colours and with every number as `#`: lines move when
/// other lines are written.
fn findings(text: &[u8]) -> Vec<SafeText> {
    if text.len() > TEXT_BYTES_MAX {
        return Vec::new();
    }
    let text = SafeText::from_bytes(text).terminal();
    let is_finding = |line: &&str| {
        let lower = line.to_lowercase();
        FINDING_WORDS.iter().any(|word| lower.contains(word))
    };
    let lines = text.lines().map(str::trim).filter(is_finding);
    lines.take(FAILURES_MAX + 1).map(|line| SafeText::new(without_numbers(line))).collect()
}

fn without_numbers(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars().take(LINE_CHARS_MAX) {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    shape
}

/// Compares what fails now with what failed on the base. An empty list of the base means that its
/// failures cannot be told apart.
pub fn compare(base: &[SafeText], now: Option<&[SafeText]>) -> Compared {
    let Some(now) = now.filter(|_| !base.is_empty()) else { return Compared::Unknown };
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for known in base {
        *left.entry(known.raw()).or_default() += 1;
    }
    let mut new = Vec::new();
    for failure in now {
        match left.get_mut(failure.raw()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new.push(failure.clone()),
        }
    }
    if new.is_empty() { Compared::NoWorse { known: now.len() } } else { Compared::Worse(new) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<SafeText> {
        list.iter().map(|name| SafeText::new(*name)).collect()
    }

    fn tests_failed(list: &[&str], count: Option<u64>) -> Fault {
        let mut fault = Fault::new(Reason::TestFailure);
        fault.facts.failed_tests = names(list);
        fault.facts.failed_count = count;
        fault
    }

    #[test]
    fn what_failed_before_is_no_worse_and_what_is_new_is_named() {
        let base = names(&["a", "b"]);
        assert_eq!(compare(&base, Some(&names(&["b"]))), Compared::NoWorse { known: 1 });
        assert_eq!(compare(&base, Some(&base)), Compared::NoWorse { known: 2 });
        assert_eq!(compare(&base, Some(&names(&["b", "c"]))), Compared::Worse(names(&["c"])));
        // The same finding once more is one more finding.
        assert_eq!(compare(&base, Some(&names(&["a", "a"]))), Compared::Worse(names(&["a"])));
        assert_eq!(compare(&base, None), Compared::Unknown);
        assert_eq!(compare(&[], Some(&base)), Compared::Unknown);
    }

    #[test]
    fn tests_count_only_where_all_of_them_are_named() {
        assert_eq!(failures(&tests_failed(&["a", "b"], Some(2)), b""), Some(names(&["a", "b"])));
        assert_eq!(failures(&tests_failed(&["a", "b"], Some(3)), b""), None);
        assert_eq!(failures(&tests_failed(&[], Some(1)), b""), None);
    }

    #[test]
    fn findings_are_the_same_when_only_their_lines_have_moved() {
        let fault = Fault::new(Reason::LintError);
        let before = b"src/a.js\n  3:5  error  Unexpected var  no-var\n\xE2\x9C\x96 1 problem (1 error)\n";
        let moved = b"src/a.js\n  13:15  error  Unexpected var  no-var\n\xE2\x9C\x96 1 problem (1 error)\n";
        let more = b"  3:5  error  Unexpected var  no-var\n  9:1  error  Unexpected var  no-var\n";
        let base = failures(&fault, before).unwrap();
        assert!(matches!(compare(&base, failures(&fault, moved).as_deref()), Compared::NoWorse { .. }));
        assert!(matches!(compare(&base, failures(&fault, more).as_deref()), Compared::Worse(_)));
        assert_eq!(failures(&fault, b"something is wrong"), None);
    }
}
