//! The id of a phase: how people write it, and the normalised key by which ids are compared.

use backstop_core::{Name, SafeText};
use serde::{Deserialize, Serialize};

/// The word before an id that is not part of it.
const WORD: &str = "phase";
/// How much of an invalid id is shown.
const GIVEN_CHARS_MAX: usize = 60;
/// The longest text that is read as an id, in bytes: a key has at most 64.
const GIVEN_BYTES_MAX: usize = 512;

/// The id of a phase. `2A`, `Phase 2-A` and `2 a` are the same phase, with the key `2a`; `1.1` and
/// `11` are two.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PhaseId {
    key: Name,
    shown: String,
}

/// A text that is not a phase id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no phase id", given.line(GIVEN_CHARS_MAX))]
pub struct PhaseIdError {
    /// What was given.
    pub given: SafeText,
}

impl PhaseIdError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        "write letters and digits, with dots between them where there are any, such as 2A or 1.1"
    }
}

impl PhaseId {
    /// The normalised id. Safe in file names.
    pub fn key(&self) -> &Name {
        &self.key
    }

    /// The id as its author wrote it, without the word `Phase`. Safe to print.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// The text after the word `Phase`, if it is a word of its own and something follows.
pub(crate) fn after_word(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(WORD.len())?;
    let mut chars = rest.chars();
    let separated = match chars.next()? {
        // `phase-out` is one word, `phase-2` is two.
        '-' | '_' => chars.next().is_some_and(|c| c.is_ascii_digit()),
        c => c.is_whitespace(),
    };
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '_'));
    (word.eq_ignore_ascii_case(WORD) && separated && !rest.is_empty()).then_some(rest)
}

/// The key and the shown form of a text without markup.
fn normalised(text: &str) -> Option<(String, String)> {
    let (mut key, mut shown) = (String::new(), String::new());
    // The separator between the last letter and the next one.
    let mut between: Option<char> = None;
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => {
                shown.extend(between);
                key.extend(between.filter(|c| *c == '.'));
                between = None;
                key.push(c.to_ascii_lowercase());
                shown.push(c);
            }
            '.' if between.is_none() && !key.is_empty() => between = Some(c),
            '-' | '_' if between != Some('.') && !key.is_empty() => between = Some(c),
            c if c.is_whitespace() && between != Some('.') && !key.is_empty() => {
                between = between.or(Some(' '));
            }
            _ => return None,
        }
    }
    (between.is_none() && !key.is_empty()).then_some((key, shown))
}

impl std::str::FromStr for PhaseId {
    type Err = PhaseIdError;

    fn from_str(given: &str) -> Result<Self, PhaseIdError> {
        let error =
            || PhaseIdError { given: SafeText::new(&given[..given.floor_char_boundary(GIVEN_BYTES_MAX)]) };
        let text = given.trim();
        if text.len() > GIVEN_BYTES_MAX {
            return Err(error());
        }
        // A list's dot or a heading's colon is not part of an id.
        let text = after_word(text).unwrap_or(text).trim_end_matches(['.', ':']);
        let (key, shown) = normalised(text).ok_or_else(error)?;
        Ok(Self { key: key.parse().map_err(|_| error())?, shown })
    }
}

impl TryFrom<String> for PhaseId {
    type Error = PhaseIdError;
    fn try_from(given: String) -> Result<Self, PhaseIdError> {
        given.parse()
    }
}

impl From<PhaseId> for String {
    fn from(id: PhaseId) -> String {
        id.shown
    }
}

impl std::fmt::Display for PhaseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.shown)
    }
}

impl PartialEq for PhaseId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for PhaseId {}

impl PartialOrd for PhaseId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PhaseId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl std::hash::Hash for PhaseId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_way_to_write_an_id() {
        for (given, key, shown) in [
            ("2A", "2a", "2A"),
            ("Phase 2-A", "2a", "2-A"),
            ("phase 2-a", "2a", "2-a"),
            ("2 a", "2a", "2 a"),
            ("PHASE\u{a0}2_A", "2a", "2_A"),
            ("Phase-2A", "2a", "2A"),
            ("2  -  A", "2a", "2-A"),
            ("1.1", "1.1", "1.1"),
            ("11", "11", "11"),
            ("1.", "1", "1"),
            ("Phase 3:", "3", "3"),
            ("phaseout", "phaseout", "phaseout"),
            ("phase-out", "phaseout", "phase-out"),
            ("Phase Out", "out", "Out"),
            ("Phase2", "phase2", "Phase2"),
            ("Phase", "phase", "Phase"),
            ("Phase Phase 2", "phase2", "Phase 2"),
        ] {
            let id: PhaseId = given.parse().unwrap();
            assert_eq!((id.key().as_str(), id.shown()), (key, shown), "{given}");
        }
        for bad in [
            "",
            "-",
            "Phase -",
            "2A!",
            "é",
            "..",
            "1..1",
            "1. 1",
            "-2",
            "2/3",
            "a\u{202e}b",
            &"a".repeat(65),
            "✅",
        ] {
            assert!(bad.parse::<PhaseId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_are_compared_by_key() {
        let (one, other): (PhaseId, PhaseId) = ("2-A".parse().unwrap(), "phase 2a".parse().unwrap());
        assert_eq!(one, other);
        assert_eq!(format!("{one:>4}|"), " 2-A|");
        assert!("1.1".parse::<PhaseId>().unwrap() != "11".parse().unwrap());
    }

    proptest! {
        #[test]
        fn an_id_reads_back_as_itself(text in "\\PC{0,80}") {
            if let Ok(id) = text.parse::<PhaseId>() {
                prop_assert_eq!(id.key().as_str().parse::<PhaseId>().unwrap(), id.clone());
                prop_assert!(id.shown().chars().all(|c| c.is_ascii_graphic() || c == ' '));
            }
        }
    }
}
