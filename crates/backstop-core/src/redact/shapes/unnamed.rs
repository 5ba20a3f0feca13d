//! Tokens of issuers that the table does not name: a word in small letters, `_` or `-`, and a long
//! row of letters and digits that is random beyond doubt (`acme_live_…`).
//!
//! A window of the row's length is moved over the text and read from its end: a sign in it moves it
//! behind that sign, so that few bytes of an ordinary text are read at all.

use super::tokens::Body;
use super::value::is_very_random;
use super::{run, run_back};
use std::ops::Range;

/// A shorter row of letters and digits may be the id of a request or of an answer.
const ROW_BYTES_MIN: usize = 32;
/// How much may stand before it.
const PREFIX_BYTES_MAX: usize = 24;
/// The first words of names of checksums and of generated files.
const OTHERS: &[&str] = &["sha", "md", "blake", "crc", "chunk", "index", "main", "vendor", "assets", "test"];

/// Adds the tokens.
pub(super) fn find(text: &[u8], found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(window) = text.get(at..at + ROW_BYTES_MIN) {
        match window.iter().rposition(|byte| !byte.is_ascii_alphanumeric()) {
            Some(sign) => at += sign + 1,
            None => {
                let length = run(&text[at..], |byte| byte.is_ascii_alphanumeric());
                if let Some(start) = start_of_prefix(text, at)
                    && is_very_random(&text[at..at + length])
                {
                    let end = at + length + run(&text[at + length..], |byte| Body::Word.has(byte));
                    found.push(start..end);
                    at = end;
                } else {
                    at += length;
                }
            }
        }
    }
}

/// Where the word begins that stands before a row at `at`.
fn start_of_prefix(text: &[u8], at: usize) -> Option<usize> {
    let before = &text[..at];
    let is_prefix = |byte: u8| Body::Lower.has(byte) || matches!(byte, b'_' | b'-');
    let length = run_back(before, PREFIX_BYTES_MAX, is_prefix);
    let (outside, prefix) = before.split_at(at - length);
    let letters = run(prefix, |byte| byte.is_ascii_lowercase());
    let is_alone = !outside.last().is_some_and(|byte| super::is_key_byte(*byte) || *byte == b'%');
    // `name=token` and `name:token` are a name and its value.
    let is_assigned = outside.last() == Some(&b'=');
    let is_other = OTHERS.iter().any(|other| prefix[..letters].starts_with(other.as_bytes()));
    let is_sign = matches!(prefix.last(), Some(b'_' | b'-'));
    (is_sign && letters >= 2 && (is_alone || is_assigned) && !is_other).then(|| at - length)
}
