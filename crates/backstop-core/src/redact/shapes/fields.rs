//! Names and values in two fields: `{"name": "DB_PASSWORD", "value": "…"}`, `- name: DB_PASSWORD`
//! and `value: …` below it, `<entry key="db.password">…`, `["x-api-key", "…"]`, the parts of a
//! form.

use super::names::{Separator, Word};
use super::value::{VALUE_BYTES_MAX, is_key_like};
use super::{run_back, run_within};

/// How far the two fields are from each other.
const GAP_BYTES_MAX: usize = 64;

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// What separates a name that is itself a value from its own value, and where that begins.
pub(super) fn value(
    text: &[u8],
    kind: Word,
    name_start: usize,
    name_end: usize,
) -> Option<(Separator, usize)> {
    let rest = &text[name_end..];
    let quote = rest.first().copied().filter(|byte| is_quote(*byte));
    let at = name_end + usize::from(quote.is_some());
    let before = &text[..name_start];
    let before =
        if quote.is_some() && before.last().copied() == quote { &before[..before.len() - 1] } else { before };
    let after = &text[at..];
    if quote.is_some() && before.ends_with(b"=") {
        if after.first() == Some(&b'>') {
            return Some((Separator::Element, at + 1));
        }
        // A part of a form: an empty line, and then its value.
        let ends = run_within(after, 8, |byte| matches!(byte, b'\r' | b'\n'));
        if after[..ends].iter().filter(|byte| **byte == b'\n').count() >= 2 {
            return Some((Separator::Colon, at + ends));
        }
    }
    if quote.is_some() && is_pair(text, before, kind, at) {
        let blanks = run_within(&after[1..], 8, |byte| byte == b' ');
        return Some((Separator::Colon, at + 1 + blanks));
    }
    let is_field = before.trim_ascii_end().last().is_some_and(|byte| matches!(byte, b':' | b'='));
    if !is_field {
        return None;
    }
    let gap =
        run_within(after, GAP_BYTES_MAX, |byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';'));
    let field = &after[gap..];
    let open = usize::from(field.first().is_some_and(|byte| is_quote(*byte)));
    let length = run_within(&field[open..], 16, |byte| byte.is_ascii_alphabetic());
    let is_value = [&b"value"[..], b"stringvalue", b"plainvalue", b"secretvalue"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(&field[open..open + length]));
    if gap == 0 || !is_value {
        return None;
    }
    let close = open + length + usize::from(field.get(open + length).is_some_and(|byte| is_quote(*byte)));
    let blanks = run_within(&field[close..], 8, |byte| byte == b' ');
    let separator = match field.get(close + blanks)? {
        b':' => Separator::Colon,
        b'=' => Separator::Equals,
        _ => return None,
    };
    let from = at + gap + close + blanks + 1;
    Some((separator, from + run_within(&text[from..], 8, |byte| byte == b' ')))
}

/// Whether a quoted name that ends at `at` is the first of two words in brackets, of which the
/// other is random: `["x-api-key", "…"]`.
fn is_pair(text: &[u8], before: &[u8], kind: Word, at: usize) -> bool {
    let before = before.strip_suffix(b"b").unwrap_or(before);
    let before = &before[..before.len() - run_back(before, 4, |byte| byte == b' ')];
    if !matches!(before.last(), Some(b'[' | b'(')) || text.get(at) != Some(&b',') {
        return false;
    }
    let rest = &text[at + 1..];
    let rest = &rest[run_within(rest, 8, |byte| byte == b' ')..];
    let rest = rest.strip_prefix(b"b").unwrap_or(rest);
    let Some(quote) = rest.first().copied().filter(|byte| is_quote(*byte)) else { return false };
    let inner = &rest[1..];
    let length = run_within(inner, VALUE_BYTES_MAX, |byte| byte != quote && byte != b'\n');
    let last = run_back(&inner[..length], VALUE_BYTES_MAX, |byte| byte != b' ');
    let after = inner.get(length + 1..).unwrap_or_default();
    let is_closed = matches!(after[run_within(after, 4, |byte| byte == b' ')..].first(), Some(b']' | b')'));
    is_closed && (kind == Word::Authorization || is_key_like(&inner[length - last..length]))
}

/// Whether a line ends in a name whose value may be in the field on the next one.
pub(super) fn may_open(line: &[u8]) -> bool {
    const NAMES: &[&str] = &["name", "key", "variable", "header", "parameter"];
    let is_end = |byte: u8| is_quote(byte) || byte == b',';
    let line = &line[..line.len() - run_back(line, 3, is_end)];
    let value =
        run_back(line, VALUE_BYTES_MAX, |byte| !is_quote(byte) && !matches!(byte, b' ' | b'=' | b':'));
    let before = &line[..line.len() - value];
    let signs = run_back(before, 8, |byte| is_quote(byte) || matches!(byte, b' ' | b':' | b'='));
    let before = &before[..before.len() - signs];
    let name = &before[before.len() - run_back(before, 16, |byte| byte.is_ascii_alphabetic())..];
    value > 0 && signs > 0 && NAMES.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(name))
}
