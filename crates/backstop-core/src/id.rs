//! Ids and names. A name from outside is parsed into one of these before it goes near a path.

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Why something is not an id or a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not a name.
    #[error(
        "`{given}` is not a name: use 1 to 64 of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit"
    )]
    Name {
        /// What was given, escaped and cut short.
        given: String,
    },
    /// Not a run id.
    #[error("`{given}` is not a run id: it looks like r-7f3a")]
    Run {
        /// What was given, escaped and cut short.
        given: String,
    },
}

fn shown(given: &str) -> String {
    given.chars().take(40).flat_map(char::escape_default).collect()
}

/// A checked name of a provider, a phase, a budget: safe as part of a file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Name {
    type Err = IdError;

    fn from_str(given: &str) -> Result<Self, IdError> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
        let first = given.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if first && given.len() <= NAME_BYTES_MAX && given.bytes().all(allowed) {
            Ok(Self(given.to_owned()))
        } else {
            Err(IdError::Name { given: shown(given) })
        }
    }
}

impl TryFrom<String> for Name {
    type Error = IdError;
    fn try_from(given: String) -> Result<Self, IdError> {
        given.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The id of a run. It prints as `r-7f3a`; it grows when short ones are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(u64);

impl RunId {
    /// From a random number; `digits` says how many hexadecimal digits to keep, 4 to 16.
    pub fn from_random(random: u64, digits: u32) -> Self {
        let digits = digits.clamp(4, 16);
        // The first digit is never 0, so that the id keeps its length when it is printed.
        let low = (random >> 4) & (u64::MAX >> (64 - 4 * (digits - 1)));
        let first = random % 15 + 1;
        Self((first << (4 * (digits - 1))) | low)
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "r-{:04x}", self.0)
    }
}

impl std::str::FromStr for RunId {
    type Err = IdError;

    fn from_str(given: &str) -> Result<Self, IdError> {
        let error = || IdError::Run { given: shown(given) };
        let digits = given.strip_prefix("r-").ok_or_else(error)?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !plain || !(4..=16).contains(&digits.len()) || (digits.len() > 4 && digits.starts_with('0')) {
            return Err(error());
        }
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| error())
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;
    fn try_from(given: String) -> Result<Self, IdError> {
        given.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.to_string()
    }
}

/// The id of an event: its run and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The run.
    pub run: RunId,
    /// Its place in the run, counted from 1.
    pub seq: u64,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.run, self.seq)
    }
}

impl std::str::FromStr for EventId {
    type Err = IdError;

    fn from_str(given: &str) -> Result<Self, IdError> {
        let error = || IdError::Run { given: shown(given) };
        let (run, seq) = given.split_once('.').ok_or_else(error)?;
        Ok(Self { run: run.parse()?, seq: seq.parse().map_err(|_| error())? })
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for bad in ["", "../../x", "/abs", "a/b", "-x", ".", "..", "A", "a b", "a\n", "é", &"a".repeat(65)] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
        for good in ["openai", "2a", "1.1", "a_b-c"] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn run_ids_print_as_in_the_documents() {
        assert_eq!("r-7f3a".parse::<RunId>().unwrap().to_string(), "r-7f3a");
        for bad in ["7f3a", "r-7F3A", "r-7f3", "r-", "r-../x", "r-00007f3a"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_random_run_id_reads_back(random: u64, digits in 0u32..20) {
            let id = RunId::from_random(random, digits);
            prop_assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        }
    }
}
