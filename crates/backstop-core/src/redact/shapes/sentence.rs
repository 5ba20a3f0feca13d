//! Secrets in prose: `invalid token …`, `password for bob is …`, `ENV API_TOKEN …`.

use super::names::{Separator, Word};
use super::value::{
    VALUE_BYTES_MAX, is_generated, is_hex_key, is_key_like, is_path, is_placeholder, is_small_word,
};
use super::{run_back, run_within};
use std::ops::Range;

/// How many words stand between a name and its value.
const WORDS_MAX: usize = 7;
const WORD_BYTES_MAX: usize = 24;

/// Words beside the small ones that stand between a name and its value.
const BETWEEN: &[&str] =
    &["provided", "following", "given", "generated", "value", "header", "used", "received", "now", "named"];

/// The random value that a name in a sentence is followed by.
pub(super) fn value(text: &[u8], kind: Word, name_end: usize) -> Option<Range<usize>> {
    if !matches!(kind, Word::Password | Word::Secret | Word::Token | Word::Key) {
        return None;
    }
    let mut at = name_end;
    // What is no more than a number in hexadecimal digits must stand near.
    let mut is_near = true;
    for _ in 0..=WORDS_MAX {
        let blanks = run_within(&text[at..], 4, |byte| byte == b' ');
        let quote = text.get(at + blanks).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        let start = at + blanks + usize::from(quote.is_some());
        let is_inside = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`');
        let length = run_within(&text[start..], VALUE_BYTES_MAX, is_inside);
        let word = &text[start..start + length];
        let signs = run_back(word, 3, |byte| matches!(byte, b'.' | b',' | b';' | b':' | b')'));
        let plain = &word[..length - signs];
        if blanks == 0 || plain.is_empty() {
            return None;
        }
        if convinces(plain, kind, is_near) {
            return Some(start..start + plain.len());
        }
        // The end of a sentence, or a path, a number, code.
        let goes_on = matches!(&word[plain.len()..], b"" | b":");
        if !goes_on || !is_word(plain) {
            return None;
        }
        is_near &=
            is_small_word(plain) || BETWEEN.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(plain));
        at = start + length + usize::from(quote.is_some() && text.get(start + length).copied() == quote);
    }
    None
}

fn is_word(word: &[u8]) -> bool {
    word.len() <= WORD_BYTES_MAX
        && word[0].is_ascii_alphabetic()
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'-' | b'_' | b'.'))
}

fn convinces(value: &[u8], kind: Word, is_near: bool) -> bool {
    const BASE64_BYTES_MIN: usize = 32;
    // With a slash in it, a short one is a path, and one with a dot as well.
    let is_base64 = value.len() >= BASE64_BYTES_MIN && !value.contains(&b'.');
    if (value.contains(&b'/') && !is_base64) || value.contains(&b':') {
        return false;
    }
    let is_password = matches!(kind, Word::Password | Word::Secret);
    let is_secret = match is_hex_key(value) {
        true => is_near,
        false => is_key_like(value) || (is_password && is_generated(value)),
    };
    is_secret && !is_placeholder(value) && !is_path(value)
}

/// `ENV API_TOKEN …`, `setenv API_TOKEN …`, `set DB_PASSWORD …`: the value is what is left of the
/// line.
pub(super) fn assignment(text: &[u8], name_start: usize, name_end: usize) -> Option<(Separator, usize)> {
    const COMMANDS: &[&str] = &["set", "setenv", "env", "arg", "export"];
    const VALUE_BYTES_MIN: usize = 6;
    let name = &text[name_start..name_end];
    let is_variable = name.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    let before = text[..name_start].strip_suffix(b" ")?;
    let command = &before[before.len() - run_back(before, 8, |byte| byte.is_ascii_alphabetic())..];
    if !is_variable || !COMMANDS.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(command)) {
        return None;
    }
    let value = text[name_end..].strip_prefix(b" ")?;
    let length = run_within(value, VALUE_BYTES_MAX, |byte| !byte.is_ascii_whitespace());
    let is_last = value.get(length).is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
    let is_value = length >= VALUE_BYTES_MIN && is_last && !is_small_word(&value[..length]);
    is_value.then_some((Separator::Equals, name_end + 1))
}
