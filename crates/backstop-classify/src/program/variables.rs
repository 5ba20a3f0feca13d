//! Variables of a script whose value is written in it: `M=POST; curl -X $M`.

use super::is_assignment;

/// How many variables of a script are remembered.
const VARIABLES_MAX: usize = 64;
/// Longer words are not expanded, in bytes.
const WORD_BYTES_MAX: usize = 4 << 10;

/// The variables of a script. One that is set to two values has none that is known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Variables(Vec<(String, Option<String>)>);

impl Variables {
    /// Remembers what a command sets: `A=b`, `export A=b`.
    pub(super) fn learn(&mut self, words: &[String]) {
        let set = match words.split_first() {
            Some((first, rest)) if matches!(first.as_str(), "export" | "local" | "readonly" | "declare") => {
                rest
            }
            _ if words.iter().all(|word| is_assignment(word)) => words,
            _ => return,
        };
        for (name, value) in set.iter().filter(|w| is_assignment(w)).filter_map(|w| w.split_once('=')) {
            let is_full = self.0.len() >= VARIABLES_MAX;
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if known.as_deref() != Some(value) => *known = None,
                None if !is_full => self.0.push((name.to_owned(), Some(value.to_owned()))),
                _ => {}
            }
        }
    }

    /// The words with known variables in place. A program that is a variable may be several words.
    pub(super) fn expand(&self, words: &[String]) -> Vec<String> {
        if self.0.is_empty() {
            return words.to_vec();
        }
        let program = words.iter().position(|word| !is_assignment(word));
        let mut all = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            let value = self.expand_word(word);
            match program == Some(at) && word.starts_with('$') && value.contains(' ') {
                true => all.extend(super::split(&value).concat()),
                false => all.push(value),
            }
        }
        all
    }

    fn expand_word(&self, word: &str) -> String {
        let mut out = String::with_capacity(word.len());
        let mut rest = word;
        while let Some(at) = rest.find('$').filter(|_| out.len() < WORD_BYTES_MAX) {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let braced = rest.strip_prefix('{');
            let from = braced.unwrap_or(rest);
            let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
            let (name, after) = from.split_at(end);
            let after = if braced.is_some() { after.strip_prefix('}') } else { Some(after) };
            let known =
                self.0.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.as_deref());
            match (known, after) {
                (Some(value), Some(after)) => {
                    out.push_str(value);
                    rest = after;
                }
                _ => out.push('$'),
            }
        }
        out.push_str(rest);
        out
    }
}
