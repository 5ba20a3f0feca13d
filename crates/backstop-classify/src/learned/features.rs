//! Turns a failure into numbers: which words, pairs of words and pieces of words its last lines
//! have, what the grammar and the rules recognised, how it ended.

use crate::grammar::Reading;
use backstop_core::{Reason, fnv1a};

/// How many features there can be; words are hashed into that many. The table keeps those that
/// weigh most.
pub const FEATURES: usize = 1 << 18;
/// How many lines of a stream are read: from its beginning, and from its end.
const FIRST_LINES: usize = 6;
const LAST_LINES: usize = 34;
/// How many bytes of a stream are read.
const BYTES_MAX: usize = 3000;
/// How many words of a line are read.
const WORDS_MAX: usize = 60;
/// How many bytes a piece of a word has.
const PIECE_BYTES: usize = 4;
/// What a rule or a finding of the grammar counts, where a word counts 1.
const RECOGNISED: f32 = 2.0;
/// What a piece of a word counts.
const PIECE: f32 = 0.6;

/// A failure as numbers: feature and value, by rising feature, of length 1.
pub type Vector = Vec<(u32, f32)>;

/// What the back-off sees of a failure.
pub(crate) struct Case<'c> {
    pub(crate) command: &'c str,
    pub(crate) exit: Option<i64>,
    pub(crate) signal: Option<i64>,
    /// The lines of each stream.
    pub(crate) streams: &'c [Vec<String>],
    /// The rules that matched and what each stands for, the deciding one first.
    pub(crate) rules: &'c [(&'c str, Reason)],
    /// The reason that the rules found.
    pub(crate) reason: Reason,
    /// The kind of the rule that decided.
    pub(crate) kind: &'static str,
    pub(crate) reading: &'c Reading,
}

impl Case<'_> {
    /// The failure as numbers.
    pub(crate) fn vector(&self) -> Vector {
        let mut values: Vec<(u32, f32)> = Vec::new();
        let mut text: Vec<u8> = Vec::new();
        let mut set = |kind: u8, parts: [&[u8]; 2], value: f32| {
            text.clear();
            text.push(kind);
            text.extend_from_slice(parts[0]);
            if !parts[1].is_empty() {
                text.push(b' ');
                text.extend_from_slice(parts[1]);
            }
            values.push((slot(&text), value));
        };
        for lines in self.streams {
            for line in read_lines(lines) {
                words_of(line, |kind, first, second| set(kind, [first, second], value_of(kind)));
            }
        }
        words_of(self.command, |kind, first, second| {
            set(kind.to_ascii_uppercase(), [first, second], value_of(kind));
        });
        for finding in &self.reading.findings {
            let reason = finding.reason.map_or("", Reason::code).as_bytes();
            set(b'g', [finding.kind.as_bytes(), b""], RECOGNISED);
            set(b'g', [finding.kind.as_bytes(), reason], RECOGNISED);
            set(b'f', [reason, b""], RECOGNISED);
        }
        for (rule, reason) in self.rules {
            set(b'r', [rule.as_bytes(), b""], RECOGNISED);
            set(b'm', [reason.code().as_bytes(), b""], RECOGNISED);
        }
        let decider = self.rules.first().map_or("", |(rule, _)| rule);
        set(b'd', [decider.as_bytes(), b""], RECOGNISED);
        set(b's', [self.reason.code().as_bytes(), b""], RECOGNISED);
        set(b's', [self.reason.code().as_bytes(), self.kind.as_bytes()], RECOGNISED);
        set(b'x', [format!("{:?}", self.exit).as_bytes(), b""], 1.0);
        set(b'y', [format!("{:?}", self.signal).as_bytes(), b""], 1.0);
        let count: usize = self.streams.iter().map(Vec::len).sum();
        set(b'n', [count.min(5).to_string().as_bytes(), b""], 1.0);
        set(b'e', [&[u8::from(self.streams.get(1).is_some_and(|s| !s.is_empty()))], b""], 1.0);
        // Of several with one number, the largest value counts.
        values.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        values.dedup_by_key(|(feature, _)| *feature);
        let length = values.iter().map(|(_, value)| value * value).sum::<f32>().sqrt().max(1e-6);
        values.iter_mut().for_each(|(_, value)| *value /= length);
        values
    }
}

/// What a word (`w`), a pair of words (`b`) or a piece of a word (`c`) counts.
fn value_of(kind: u8) -> f32 {
    if kind == b'c' { PIECE } else { 1.0 }
}

/// The features of the words and pairs of words that a failure printed, each once.
pub(crate) fn text_features(streams: &[Vec<String>]) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for line in streams.iter().flat_map(|lines| read_lines(lines)) {
        words_of(line, |kind, first, second| {
            // Marks and numbers are in every text.
            let is_word = |word: &[u8]| word.len() > 2;
            if kind == b'w' && is_word(first) {
                all.push(slot(&[&[kind], first].concat()));
            } else if kind == b'b' && is_word(first) && is_word(second) {
                all.push(slot(&[&[kind], first, b" ", second].concat()));
            }
        });
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The lines of a stream that are read: its last ones, and its first ones.
pub(super) fn read_lines(lines: &[String]) -> impl Iterator<Item = &str> {
    let mut bytes = 0;
    let last: Vec<&str> = lines
        .iter()
        .rev()
        .take(LAST_LINES)
        .map(String::as_str)
        .take_while(|line| {
            bytes += line.len();
            bytes <= BYTES_MAX
        })
        .collect();
    let before = lines.len() - last.len();
    lines.iter().take(FIRST_LINES.min(before)).map(String::as_str).chain(last.into_iter().rev())
}

fn slot(text: &[u8]) -> u32 {
    let hash = fnv1a(text);
    u32::try_from((hash ^ (hash >> 29)) % FEATURES as u64).unwrap_or(0)
}

/// Calls `set` for each word (`w`), pair of words (`b`) and piece of a long word (`c`) of a line.
/// Numbers are all the same.
fn words_of(line: &str, mut set: impl FnMut(u8, &[u8], &[u8])) {
    let mut before: Vec<u8> = Vec::new();
    for word in words(line).take(WORDS_MAX) {
        set(b'w', &word, b"");
        if !before.is_empty() {
            set(b'b', &before, &word);
        }
        if word.len() > PIECE_BYTES {
            let framed = [&b"<"[..], &word, b">"].concat();
            for piece in framed.windows(PIECE_BYTES) {
                set(b'c', piece, b"");
            }
        }
        before = word;
    }
}

/// The words of a line in lower case: letters, `0` for any number, and every other mark by itself.
pub(super) fn words(line: &str) -> impl Iterator<Item = Vec<u8>> + '_ {
    let bytes = line.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let first = *bytes.get(at)?;
        let is_letter = |b: &u8| b.is_ascii_alphabetic() || *b == b'_' || *b == b'\'' || *b >= 0x80;
        let start = at;
        let run = |keep: &dyn Fn(&u8) -> bool| bytes[start..].iter().take_while(|b| keep(b)).count();
        let word = if first.is_ascii_digit() {
            at += run(&u8::is_ascii_digit);
            b"0".to_vec()
        } else if is_letter(&first) {
            at += run(&is_letter);
            bytes[start..at].to_ascii_lowercase()
        } else {
            at += 1;
            vec![first]
        };
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(text: &str, exit: i64) -> Vector {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let reading = Reading::default();
        Case {
            command: "frob x",
            exit: Some(exit),
            signal: None,
            streams: &[lines],
            rules: &[],
            reason: Reason::Unknown,
            kind: "",
            reading: &reading,
        }
        .vector()
    }

    #[test]
    fn a_vector_has_length_one_and_numbers_do_not_matter() {
        let one = vector("frob: bad line 17 of file", 1);
        let length: f32 = one.iter().map(|(_, value)| value * value).sum();
        assert!((length - 1.0).abs() < 1e-4);
        assert_eq!(one, vector("frob: bad line 4711 of file", 1));
        assert_ne!(one, vector("frob: bad line 17 of file", 2));
        assert!(one.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn long_text_is_cut() {
        let long: Vec<String> = (0..10_000).map(|n| format!("line {n}")).collect();
        let read: Vec<&str> = read_lines(&long).collect();
        assert_eq!(
            (read.len(), read[0], *read.last().unwrap()),
            (FIRST_LINES + LAST_LINES, "line 0", "line 9999")
        );
    }

    #[test]
    fn words_are_letters_numbers_and_marks() {
        let got: Vec<String> = words("It's 12.5% of a_b!").map(|w| String::from_utf8(w).unwrap()).collect();
        assert_eq!(got, ["it's", "0", ".", "0", "%", "of", "a_b", "!"]);
    }
}
