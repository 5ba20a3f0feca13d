//! The name of an object: 40 or 64 hexadecimal digits.

use serde::{Deserialize, Serialize};

/// The name of a commit or a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha(String);

/// How many digits are enough for people.
const SHORT_DIGITS: usize = 10;

impl Sha {
    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..SHORT_DIGITS]
    }
}

/// Why something is not the name of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not the full name of a git object: it has 40 or 64 digits of 0-9, a-f")]
pub struct ShaError {
    given: String,
}

impl std::str::FromStr for Sha {
    type Err = ShaError;

    fn from_str(given: &str) -> Result<Self, ShaError> {
        let digits = given.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if digits && matches!(given.len(), 40 | 64) {
            Ok(Self(given.to_owned()))
        } else {
            Err(ShaError { given: given.chars().take(70).flat_map(char::escape_default).collect() })
        }
    }
}

impl TryFrom<String> for Sha {
    type Error = ShaError;
    fn try_from(given: String) -> Result<Self, ShaError> {
        given.parse()
    }
}

impl From<Sha> for String {
    fn from(sha: Sha) -> String {
        sha.0
    }
}

impl std::fmt::Display for Sha {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<std::ffi::OsStr> for Sha {
    fn as_ref(&self) -> &std::ffi::OsStr {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_names_are_taken() {
        for good in ["0".repeat(40), "af".repeat(32)] {
            assert_eq!(good.parse::<Sha>().unwrap().as_str(), good);
        }
        for bad in ["", "HEAD", "-x", &"0".repeat(39), &"A".repeat(40), &"g".repeat(64)] {
            assert!(bad.parse::<Sha>().is_err(), "{bad}");
        }
    }
}
