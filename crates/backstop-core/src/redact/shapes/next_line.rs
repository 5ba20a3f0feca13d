//! Values that stand on the lines below their names: `Password:` and then the value, and the blocks
//! of YAML (`password: |`, `secret: >-`).

use super::fields;
use super::kubernetes;
use super::names::Word;
use super::value::{VALUE_BYTES_MAX, is_dense, is_mixed, is_path, is_placeholder, is_prose};
use super::{run, run_back, run_within};
use std::ops::Range;

/// How far the name's line is read back for its indentation.
const LINE_BYTES_MAX: usize = 256;
const INDENT_BYTES_MAX: usize = 64;

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The value below a name whose line has ended at `at`, or ends there in the mark of a block.
pub(super) fn value(text: &[u8], kind: Word, name_start: usize, at: usize) -> Option<Range<usize>> {
    if !matches!(kind, Word::Password | Word::Pass | Word::Pw | Word::Secret | Word::Token | Word::Key) {
        return None;
    }
    let rest = &text[at..];
    let mark = match rest.first() {
        Some(b'|' | b'>') => 1 + run_within(&rest[1..], 2, |b| matches!(b, b'-' | b'+' | b'1'..=b'9')),
        _ => 0,
    };
    let end = mark + run_within(&rest[mark..], INDENT_BYTES_MAX, |byte| is_blank(byte) || byte == b'\r');
    if rest.get(end) != Some(&b'\n') {
        return None;
    }
    let below = at + end + 1;
    if mark > 0 { block(text, kind, name_start, below) } else { one_word(text, kind, below) }
}

/// The word that is all of a line.
fn one_word(text: &[u8], kind: Word, below: usize) -> Option<Range<usize>> {
    let indent = run_within(&text[below..], INDENT_BYTES_MAX, is_blank);
    let start = below + indent;
    let length = run_within(&text[start..], VALUE_BYTES_MAX, |byte| !byte.is_ascii_whitespace());
    let word = &text[start..start + length];
    let after = run_within(&text[start + length..], INDENT_BYTES_MAX, |byte| is_blank(byte) || byte == b'\r');
    let is_alone = text.get(start + length + after).is_none_or(|byte| *byte == b'\n');
    let is_password = matches!(kind, Word::Password | Word::Pass | Word::Pw);
    let is_secret = is_dense(word) && is_mixed(word) && (is_password || length >= 16);
    (is_alone && is_secret && !word.contains(&b':') && !is_path(word) && !is_placeholder(word))
        .then_some(start..start + length)
}

/// All lines that are indented deeper than the name is.
fn block(text: &[u8], kind: Word, name_start: usize, below: usize) -> Option<Range<usize>> {
    let before = &text[..name_start];
    let line = &before[before.len() - run_back(before, LINE_BYTES_MAX, |byte| byte != b'\n')..];
    let indent = run(line, is_blank);
    let deeper = |from: usize| {
        let blanks = run_within(&text[from..], LINE_BYTES_MAX, is_blank);
        let is_empty = matches!(text.get(from + blanks), Some(b'\n' | b'\r'));
        (blanks > indent || is_empty).then_some(from + blanks)
    };
    let start = deeper(below)?;
    let first = &text[start..start + run_within(&text[start..], VALUE_BYTES_MAX, |byte| byte != b'\n')];
    let first = first.trim_ascii_end();
    let is_secret = match kind {
        Word::Password | Word::Pass | Word::Pw | Word::Secret => first.len() >= 4,
        _ => is_dense(first) || (first.len() >= 16 && is_mixed(first)),
    };
    if !is_secret || is_placeholder(first) || is_prose(first) {
        return None;
    }
    let (mut at, mut end) = (below, start);
    while at < text.len()
        && let Some(begin) = deeper(at)
    {
        let length = run(&text[begin..], |byte| byte != b'\n');
        if length > 0 {
            end = begin + length;
        }
        at = begin + length + 1;
    }
    Some(start..end - usize::from(text[..end].ends_with(b"\r")))
}

/// Where in whole lines one begins whose secret is still to come, or to go on, in the next line.
pub(in super::super) fn open_value(lines: &[u8]) -> Option<usize> {
    const LINES_MAX: usize = 32;
    const BYTES_MAX: usize = 4 << 10;
    if let Some(at) = kubernetes::open_manifest(lines) {
        return Some(at);
    }
    let mut end = lines.len();
    for n in 0..LINES_MAX {
        let text = lines[..end].strip_suffix(b"\n")?;
        let start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        let line = &text[start..];
        let shown = line.trim_ascii_end();
        // A block goes on over many lines, a line over one.
        let may_open = match shown.last() {
            Some(b':') => n == 0,
            Some(b'>') if n == 0 && shown.ends_with(b"=>") => true,
            Some(b'|' | b'>' | b'-' | b'+' | b'1'..=b'9') => {
                run_back(shown, 3, |byte| matches!(byte, b'-' | b'+' | b'1'..=b'9')) < 3
                    && shown.iter().rev().take(3).any(|byte| matches!(byte, b'|' | b'>'))
            }
            _ => false,
        };
        if may_open && announces(shown, b"") {
            return Some(start);
        }
        // Of two fields, the one with the name; of a form, before the empty line.
        if n <= 1 && fields::may_open(shown) {
            let is_form = shown.ends_with(b"\"") && announces(shown, b"\n");
            if is_form || (n == 0 && announces(shown, b"value: ")) {
                return Some(start);
            }
        }
        let is_inside = shown.is_empty() || line.first().is_some_and(|byte| is_blank(*byte));
        if !is_inside || start == 0 || lines.len() - start > BYTES_MAX {
            return None;
        }
        end = start;
    }
    None
}

/// Whether a secret on the line below would be masked, behind this field.
fn announces(line: &[u8], field: &[u8]) -> bool {
    let line = &line[line.len().saturating_sub(LINE_BYTES_MAX)..];
    let indent = match field {
        b"\n" => Vec::new(),
        _ => vec![b' '; 1 + run(line, is_blank)],
    };
    super::announces(&[line, b"\n", &indent, field].concat())
}
