//! Passwords in SQL: `IDENTIFIED BY '…'`, `WITH PASSWORD '…'`.

use super::run_within;
use super::value::{VALUE_BYTES_MAX, is_placeholder, is_prose};
use std::ops::Range;

/// How long a clause is.
const CLAUSE_BYTES_MAX: usize = 80;

/// Whether a statement that sets passwords may go on at a place.
pub(super) fn is_statement(text: &[u8], at: usize) -> bool {
    const VERBS: [&[u8]; 4] = [b"alter", b"create", b"grant", b"set"];
    let before = &text[..at];
    let before = &before[before.len().saturating_sub(2 * CLAUSE_BYTES_MAX)..];
    let is_word = |byte: &u8| !byte.is_ascii_alphabetic();
    before.split(is_word).any(|word| VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word)))
}

/// The quoted value behind `IDENTIFIED BY` or `IDENTIFIED WITH plugin BY`.
pub(super) fn quoted(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    if !is_statement(text, start) {
        return None;
    }
    let rest = &text[end..];
    let clause =
        run_within(rest, CLAUSE_BYTES_MAX, |b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_'));
    let is_by = rest[..clause].to_ascii_lowercase().split(|b| *b == b' ').any(|word| word == b"by");
    is_by.then(|| value(text, end + clause)).flatten()
}

/// A value in quotes at this place.
pub(super) fn value(text: &[u8], at: usize) -> Option<Range<usize>> {
    let quote = text.get(at).copied().filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let rest = &text[at + 1..];
    let length = run_within(rest, VALUE_BYTES_MAX, |byte| byte != quote && byte != b'\n');
    let value = &rest[..length];
    let is_closed = rest.get(length) == Some(&quote);
    (is_closed && length >= 3 && !is_placeholder(value) && !is_prose(value)).then(|| at + 1..at + 1 + length)
}
