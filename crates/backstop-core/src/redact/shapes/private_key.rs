//! Private keys in their frames: PEM, OpenSSH, PGP, PuTTY.

use super::run_within;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest private key. One without an end goes no further.
pub(in super::super) const KEY_BYTES_MAX: usize = 64 << 10;
/// The longest first line of a private key.
const HEAD_BYTES_MAX: usize = 80;

const PUTTY: &[u8] = b"PuTTY-User-Key-File";

fn is_head(head: &[u8]) -> bool {
    head.starts_with(PUTTY)
        || memchr::memmem::find(head, b"PRIVATE KEY").is_some()
        || memchr::memmem::find(head, b"OpenSSH PRIVATE").is_some()
}

/// Where the last line begins of the private key that begins at `from`.
fn end_mark(text: &[u8], from: usize) -> Option<usize> {
    let text = &text[..text.len().min(from + KEY_BYTES_MAX)];
    let mark: &[u8] = match &text[from..] {
        key if key.starts_with(PUTTY) => b"Private-MAC:",
        key if key.starts_with(b"---- ") => b"-- END ",
        _ => b"--END ",
    };
    memchr::memmem::find(&text[from..], mark).map(|at| from + at)
}

/// Adds the positions of all private keys.
pub(in super::super) fn find_all(text: &[u8], found: &mut Vec<Range<usize>>) {
    static MARKS: [LazyLock<Finder<'_>>; 2] =
        [LazyLock::new(|| Finder::new(b"PRIVATE")), LazyLock::new(|| Finder::new(PUTTY))];
    for mark in &MARKS {
        let mut from = 0;
        while let Some(at) = mark.find(&text[from..]).map(|at| from + at) {
            let head = &text[from.max(at.saturating_sub(HEAD_BYTES_MAX))..at];
            let start = match mark.needle() == PUTTY {
                true => Some(at),
                false => [&b"-----BEGIN "[..], b"---- BEGIN "]
                    .iter()
                    .filter_map(|begin| memchr::memmem::rfind(head, begin))
                    .max()
                    .map(|begin| at - head.len() + begin),
            };
            let key = start.and_then(|start| find(text, start));
            let after = at + mark.needle().len();
            from = key.as_ref().map_or(after, |key| key.end.max(after));
            found.extend(key);
        }
    }
}

/// A private key from its first line to its last, or as far as one can go.
fn find(text: &[u8], at: usize) -> Option<Range<usize>> {
    let head = run_within(&text[at..], HEAD_BYTES_MAX, |byte| byte != b'\n');
    if !is_head(&text[at..at + head]) {
        return None;
    }
    let end = match end_mark(text, at) {
        Some(mark) => {
            let rest = &text[mark..];
            let length = run_within(rest, HEAD_BYTES_MAX, |byte| !matches!(byte, b'\n' | b'"' | b'\''));
            // The frame ends with its dashes; what follows on the line is something else.
            let line = &rest[..length];
            let dashes = memchr::memmem::rfind(line, b"----").map_or(length, |at| at + 4);
            mark + dashes.max(6) + run_within(&rest[dashes.max(6).min(rest.len())..], 4, |byte| byte == b'-')
        }
        None => text.len().min(at + KEY_BYTES_MAX),
    };
    Some(at..end.min(text.len()))
}

/// Where a private key begins in a line that does not have its end.
pub(in super::super) fn begins_key(line: &[u8]) -> Option<usize> {
    let marks = [&b"-----BEGIN "[..], b"---- BEGIN ", PUTTY];
    let at = marks.iter().filter_map(|mark| memchr::memmem::rfind(line, mark)).max()?;
    let head = &line[at..line.len().min(at + HEAD_BYTES_MAX)];
    (is_head(head) && end_mark(line, at).is_none()).then_some(at)
}

/// Whether a private key may begin in a text.
pub(in super::super) fn has_key_mark(text: &[u8]) -> bool {
    [&b" BEGIN "[..], b"-BEGIN ", PUTTY].iter().any(|mark| memchr::memmem::find(text, mark).is_some())
}

/// Whether a private key ends in a line.
pub(in super::super) fn ends_key(line: &[u8]) -> bool {
    [&b"--END "[..], b"-- END ", b"Private-MAC:"]
        .iter()
        .any(|mark| memchr::memmem::find(line, mark).is_some())
}
