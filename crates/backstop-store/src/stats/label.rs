//! The label of an operation in statistics: the program and its first word.

use std::collections::HashMap;

/// How many characters of a word are kept.
const WORD_CHARS_MAX: usize = 40;
/// The label of all operations beyond the limit.
const OTHERS: &str = "(others)";

/// The program of a command line and its first word: `npm test`, `cargo build`, `sh`. What is
/// before the program (variables, `env`) and the folder it is in are left out, and so is a word
/// that is an option, a path or quoted.
pub fn operation_label(operation: &str) -> String {
    let assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    let mut words = operation
        .split_whitespace()
        .skip_while(|word| assignment(word) || *word == "env" || word.ends_with("/env"));
    let Some(program) = words.next() else { return "(none)".to_owned() };
    let program = program.trim_matches(['\'', '"']);
    let name = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program);
    let mut label: String = name.chars().take(WORD_CHARS_MAX).collect();
    let plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
            && word.chars().count() <= WORD_CHARS_MAX
    };
    if let Some(word) = words.next().filter(plain) {
        label.push(' ');
        label.push_str(word);
    }
    label
}

/// The labels with their numbers, up to a limit, and one for the others.
pub(super) struct Labels {
    max: usize,
    names: Vec<String>,
    known: HashMap<String, u32>,
    last: (String, u32),
}

impl Labels {
    pub(super) fn new(max: usize) -> Self {
        Self { max, names: Vec::new(), known: HashMap::new(), last: (String::new(), u32::MAX) }
    }

    /// The number of an operation's label.
    pub(super) fn of(&mut self, operation: &str) -> u32 {
        // The same command often runs many times in a row.
        if self.last.0 == operation && self.last.1 != u32::MAX {
            return self.last.1;
        }
        let mut label = operation_label(operation);
        if !self.known.contains_key(&label) && self.names.len() >= self.max {
            label = OTHERS.to_owned();
        }
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(label).or_insert_with_key(|label| {
            self.names.push(label.clone());
            next
        });
        self.last = (operation.to_owned(), number);
        number
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_first_word() {
        for (operation, label) in [
            ("npm test -- --watch", "npm test"),
            ("cargo build --release", "cargo build"),
            ("sh -c 'exit 1'", "sh"),
            ("/usr/bin/git push origin main", "git push"),
            ("CI=1 env RUST_LOG=x cargo test", "cargo test"),
            ("ls ./src", "ls"),
            ("'my prog' x", "my"),
            ("pytest tests/a.py", "pytest"),
            ("npm run:build", "npm run:build"),
            ("", "(none)"),
            ("/", "/"),
        ] {
            assert_eq!(operation_label(operation), label, "{operation}");
        }
        assert!(operation_label(&"x".repeat(1000)).len() <= WORD_CHARS_MAX);
    }

    #[test]
    fn there_is_a_bound_on_labels() {
        let mut labels = Labels::new(2);
        let numbers: Vec<u32> = ["a", "b", "c", "d", "a", "d"].map(|op| labels.of(op)).to_vec();
        assert_eq!(numbers, [0, 1, 2, 2, 0, 2]);
        assert_eq!(labels.into_names(), ["a", "b", OTHERS]);
    }
}
