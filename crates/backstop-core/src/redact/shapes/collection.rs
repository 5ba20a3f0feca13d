//! Secrets in lists and objects below their name: `"passwords": ["…"]`, `"password": {"value":
//! "…"}`.

use super::names::Word;
use super::value::{is_generated, is_key_like, is_path, is_placeholder};
use std::ops::Range;

/// How much of a list or an object is looked at.
const BYTES_MAX: usize = 512;

/// From the first secret in the list or the object that begins at `at` to the last one.
pub(super) fn values(text: &[u8], kind: Word, at: usize) -> Option<Range<usize>> {
    if !matches!(text.get(at), Some(b'[' | b'{')) {
        return None;
    }
    let text_end = text.len().min(at + BYTES_MAX);
    let is_sign = |byte: u8| matches!(byte, b'"' | b'\'' | b',' | b'[' | b']' | b'{' | b'}' | b':');
    let (mut depth, mut from) = (0_usize, at);
    let mut found: Option<Range<usize>> = None;
    while from < text_end {
        match text[from] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        let length = text[from..text_end]
            .iter()
            .position(|byte| is_sign(*byte) || byte.is_ascii_whitespace())
            .unwrap_or(text_end - from);
        if length == 0 {
            from += 1;
            continue;
        }
        let word = &text[from..from + length];
        if is_secret(word, kind) && !is_name(&text[from + length..text_end]) {
            found = Some(found.map_or(from, |found| found.start)..from + length);
        }
        from += length;
    }
    found
}

fn is_secret(word: &[u8], kind: Word) -> bool {
    let is_password = matches!(kind, Word::Password | Word::Secret);
    (is_key_like(word) || (is_password && is_generated(word))) && !is_placeholder(word) && !is_path(word)
}

/// Whether what stands before `rest` is the name of a field.
fn is_name(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b"\"").or(rest.strip_prefix(b"'")).unwrap_or(rest);
    rest.trim_ascii_start().starts_with(b":")
}
