//! A command line: for a shell, or word by word.

use backstop_core::shell;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::ffi::OsString;
use std::fmt;

/// The most words of a command.
const WORDS_MAX: usize = 1000;

/// A command line. One for a shell was written by a person, as a whole; nothing is ever put into
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// A line for `sh -c`.
    Shell(String),
    /// The program and its arguments.
    Argv(Vec<String>),
}

/// What means something to a shell outside quotes.
const SHELL_CHARS: &str = "|&;<>()$`\\*?[]#~{}!\n\r";
/// What means something to a shell inside double quotes.
const QUOTED_CHARS: &str = "$`\\!";

impl CommandLine {
    /// Word by word.
    pub fn words_of(words: &[&str]) -> Self {
        CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// What is run.
    pub fn argv(&self) -> Vec<OsString> {
        match self {
            CommandLine::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            CommandLine::Argv(words) => words.iter().map(OsString::from).collect(),
        }
    }

    /// As one would type it.
    pub fn shown(&self) -> String {
        match self {
            CommandLine::Shell(line) => line.clone(),
            CommandLine::Argv(words) => shell::line(words),
        }
    }

    /// Its words, where it runs one program and no shell is needed to say which.
    pub(crate) fn words(&self) -> Option<Vec<String>> {
        match self {
            CommandLine::Shell(line) => plain_words(line),
            CommandLine::Argv(words) => Some(words.clone()),
        }
        .filter(|words| !words.is_empty())
    }

    /// Every word that it seems to have, to recognise a name by. Nothing is run by this.
    pub fn rough_words(&self) -> Vec<String> {
        match self {
            CommandLine::Shell(line) => line.split_whitespace().map(str::to_owned).collect(),
            CommandLine::Argv(words) => words.clone(),
        }
    }

    /// Whether there is nothing to run.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            CommandLine::Shell(line) => line.trim().is_empty(),
            CommandLine::Argv(words) => words.first().is_none_or(String::is_empty),
        }
    }

    /// Whether it has a NUL, which no program can be given.
    pub(crate) fn has_nul(&self) -> bool {
        match self {
            CommandLine::Shell(line) => line.contains('\0'),
            CommandLine::Argv(words) => words.iter().any(|word| word.contains('\0')),
        }
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = CommandLine;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command: a line of text, or a list of a program and its arguments")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CommandLine, E> {
                checked(text.to_owned()).map(CommandLine::Shell)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CommandLine, A::Error> {
                let words = Vec::<String>::deserialize(SeqAccessDeserializer::new(list))?;
                if words.len() > WORDS_MAX {
                    return Err(A::Error::custom(format!(
                        "there are {} words, more than {WORDS_MAX}",
                        words.len()
                    )));
                }
                checked(words.first().cloned().unwrap_or_default())?;
                if words.iter().any(|word| word.contains('\0')) {
                    return Err(A::Error::custom("there is a NUL in this command"));
                }
                Ok(CommandLine::Argv(words))
            }
        }
        from.deserialize_any(Reader)
    }
}

fn checked<E: Error>(text: String) -> Result<String, E> {
    if text.trim().is_empty() {
        return Err(E::custom("this is empty"));
    }
    if text.contains('\0') {
        return Err(E::custom("there is a NUL in this text"));
    }
    Ok(text)
}

/// The words of a line that a shell would do nothing to but split. Nothing, where it would do more.
pub(crate) fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.trim().chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some('"') if QUOTED_CHARS.contains(c) => return None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if SHELL_CHARS.contains(c) => return None,
            None if c == ' ' || c == '\t' => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // `NAME=value program` is for a shell.
    let assigns = words.first().is_some_and(|first| first.contains('='));
    (quote.is_none() && !assigns).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_has_plain_words_only_where_a_shell_would_do_no_more() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("cargo test --all", Some(&["cargo", "test", "--all"])),
            ("pytest -m 'not slow'", Some(&["pytest", "-m", "not slow"])),
            ("pytest -m \"not slow\" ''", Some(&["pytest", "-m", "not slow", ""])),
            ("a'b'c", Some(&["abc"])),
            ("cargo test && cargo test --doc", None),
            ("cargo test $X", None),
            ("cargo test \"$X\"", None),
            ("pytest 'open", None),
            ("X=1 cargo test", None),
            ("pytest tests/*.py", None),
            ("pytest # all", None),
            ("pytest\nrm x", None),
        ];
        for (line, words) in cases {
            let wanted = words.map(|w| w.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
            assert_eq!(plain_words(line), wanted, "{line}");
        }
    }

    #[test]
    fn nothing_to_run_is_noticed() {
        for empty in
            [CommandLine::Shell(" \n".into()), CommandLine::Argv(vec![]), CommandLine::words_of(&["", "x"])]
        {
            assert!(empty.is_empty(), "{empty:?}");
        }
        assert!(!CommandLine::words_of(&["true"]).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_shown_says_the_same_to_a_shell(words in prop::collection::vec("[ -~]{0,12}", 1..5)) {
            let line = CommandLine::Argv(words.clone());
            let script = format!("printf '%s\\0' {}", line.shown());
            let out = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            let wanted: String = words.iter().map(|word| format!("{word}\0")).collect();
            prop_assert_eq!(String::from_utf8(out.stdout).unwrap(), wanted);
        }

        #[test]
        fn plain_words_are_those_of_a_shell(line in "[ -~]{0,30}") {
            if let Some(words) = plain_words(&line).filter(|words| !words.is_empty()) {
                let out = std::process::Command::new("sh")
                    .args(["-c", &format!("printf '%s\\0' {line}")]).output().unwrap();
                let wanted: String = words.iter().map(|word| format!("{word}\0")).collect();
                prop_assert_eq!(String::from_utf8(out.stdout).unwrap(), wanted);
            }
        }
    }
}
