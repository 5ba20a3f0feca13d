//! Exit codes that answer a question: `grep` found nothing, two files differ.
//!
//! The programs are data (`answers.toml`), compiled in by the build script. Whether an answer
//! counts as a failure is for the caller to say: a gate that runs `diff` has failed, a person who
//! runs it has not.

use crate::program::only_call;

/// Programs whose exit code is an answer.
#[derive(Debug)]
struct Answer {
    /// Base names, or a name and its subcommand.
    program: &'static [&'static str],
    /// One of these words must be among the arguments, where there are any.
    argument: &'static [&'static str],
    /// The exit codes that are answers.
    exit: &'static [i32],
}

include!(concat!(env!("OUT_DIR"), "/answers.rs"));

/// Whether this exit code of a command, given as its words, answers a question and is no failure.
/// Shells are looked through where all they run is that one command.
pub fn is_answer(words: &[String], exit: i32) -> bool {
    let Some((name, arguments)) = only_call(words) else { return false };
    let sub = subcommand(&name, &arguments);
    ANSWERS.iter().any(|answer| {
        let runs = answer.program.iter().any(|known| match known.split_once(' ') {
            Some((program, subcommand)) => program == name && sub == Some(subcommand),
            None => *known == name,
        });
        let argument = answer.argument.is_empty()
            || arguments.iter().any(|word| answer.argument.contains(&word.as_str()));
        runs && argument && answer.exit.contains(&exit)
    })
}

/// The subcommand: the first word that is neither an option nor an option's value.
fn subcommand<'a>(name: &str, arguments: &'a [String]) -> Option<&'a str> {
    /// Options of `git` before its subcommand that have a value.
    const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if name == "git" && VALUED.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        answer: Vec<Given>,
    }

    #[derive(Deserialize)]
    struct Given {
        program: Vec<String>,
        #[serde(rename = "match")]
        matches: Vec<Example>,
        miss: Vec<Example>,
    }

    #[derive(Deserialize)]
    struct Example {
        command: String,
        exit: i32,
    }

    #[test]
    fn every_example_is_an_answer_and_no_near_miss_is() {
        let file: File = toml::from_str(include_str!("../answers.toml")).unwrap();
        assert_eq!(file.answer.len(), ANSWERS.len());
        for given in &file.answer {
            assert!(!given.matches.is_empty() && !given.miss.is_empty(), "{:?}", given.program);
            for (examples, want) in [(&given.matches, true), (&given.miss, false)] {
                for Example { command, exit } in examples {
                    let words = crate::program::words(command);
                    assert_eq!(is_answer(&words, *exit), want, "`{command}` with exit code {exit}");
                }
            }
        }
    }

    #[test]
    fn hostile_words_are_survived() {
        for words in [&[][..], &["sh"], &["sh", "-c"], &["sh", "-c", "'"], &["env"], &["sudo", "-u"]] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert!(!is_answer(&words, 1), "{words:?}");
        }
    }
}
