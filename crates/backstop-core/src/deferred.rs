//! Deferred work: operations put aside until a condition is gone.

use crate::{Reason, RunId, SafeText, Timestamp};

/// Work to defer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredWork {
    /// The run that deferred it.
    pub run: RunId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub folder: String,
    /// The reason of the fault that deferred it.
    pub reason: Reason,
    /// What it waits for: a time in UTC, as RFC 3339 writes it, or a condition in words.
    pub until: SafeText,
    /// Whether `argv` is exact: false if an argument could not be stored as it is.
    pub whole: bool,
    /// Whether it is a task of another program: `argv` is its id then, and only that program can
    /// continue it.
    pub is_task: bool,
    /// The address of the service that it waits for, if it is known.
    pub address: Option<String>,
}

/// The id of deferred work. It prints as `d-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeferredId(pub u32);

impl std::fmt::Display for DeferredId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "d-{}", self.0)
    }
}

/// Something is not the id of deferred work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not the id of deferred work: it looks like d-1")]
pub struct DeferredIdError {
    /// What was given, escaped and cut short.
    pub given: String,
}

impl std::str::FromStr for DeferredId {
    type Err = DeferredIdError;

    fn from_str(given: &str) -> Result<Self, DeferredIdError> {
        let digits = given.strip_prefix("d-").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(number) => Ok(Self(number)),
            None => Err(DeferredIdError {
                given: given.chars().take(40).flat_map(char::escape_default).collect(),
            }),
        }
    }
}

/// Deferred work, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// Its id.
    pub id: DeferredId,
    /// The work as it was last deferred, with secrets masked.
    pub work: DeferredWork,
    /// Whether the command can be run from here: false if a secret was masked in it.
    pub runnable: bool,
    /// How often it was deferred.
    pub count: u32,
    /// The time of the first deferral.
    pub first_at: Timestamp,
    /// The time of the last deferral.
    pub last_at: Timestamp,
    /// Whether it was offered to a person since it was last deferred.
    pub offered: bool,
}

impl Deferred {
    /// The flags of `exec` and the command; the id of a task is one word, whatever it is.
    pub fn words(&self) -> (&[String], &[String]) {
        if self.work.is_task { (&[], &self.work.argv) } else { split(&self.work.argv) }
    }
}

/// The flags and the command of what was put aside.
pub fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&[], words),
    }
}

/// The run whose confirmation it waits for, if it does.
pub fn waits_for_confirmation(words: &[String]) -> Option<&str> {
    let (flags, _) = split(words);
    let at = flags.iter().position(|flag| flag == "--confirm")?;
    flags.get(at + 1).map(String::as_str)
}
