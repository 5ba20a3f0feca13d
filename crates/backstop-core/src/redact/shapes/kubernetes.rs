//! The data of Kubernetes secrets: every value below `data:` and `stringData:` of a `kind: Secret`,
//! before it or after it, as YAML and as JSON.

use super::{run, run_back, run_within};
use std::ops::Range;

/// How far the data of a manifest is from its kind.
const MANIFEST_BYTES_MAX: usize = 64 << 10;
/// A shorter value is none.
const VALUE_BYTES_MIN: usize = 3;
/// How much of the text that goes before the next piece is looked at.
const OPEN_BYTES_MAX: usize = 4 << 10;

/// The fields with the data.
const FIELDS: [&[u8]; 4] = [b"data:", b"stringData:", b"\"data\":", b"\"stringData\":"];

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// Adds the values of the manifest that the word `Secret` at `at` is the kind of, of which nothing
/// before `from` was looked at. Gives where it ends.
pub(super) fn find(text: &[u8], at: usize, from: usize, found: &mut Vec<Range<usize>>) -> Option<usize> {
    let start = kind(text, at)?;
    let line_start = start - run_back(&text[..start], MANIFEST_BYTES_MAX, |byte| byte != b'\n');
    // In one line, the fields beside it; else those of the same indentation.
    if text[line_start..start].contains(&b'{') || text[line_start..start].contains(&b',') {
        let begin = line_start.max(from);
        let line = &text[..at + run_within(&text[at..], MANIFEST_BYTES_MAX, |byte| byte != b'\n')];
        for name in FIELDS {
            // What lies in braces that were read is not read again for the fields in it.
            let mut done = begin;
            for field in memchr::memmem::find_iter(&line[begin..], name).map(|field| begin + field) {
                let is_word = field > begin && line[field - 1].is_ascii_alphanumeric();
                if field >= done && !is_word {
                    done = in_braces(line, field + name.len(), found).unwrap_or(done);
                }
            }
        }
        return Some(line.len());
    }
    let column = start - line_start;
    let begin = line_start.max(from) - run_back_lines(&text[from.min(line_start)..line_start]);
    let mut next = begin;
    let mut end = at;
    while next < text.len() && next < at + MANIFEST_BYTES_MAX {
        let line = &text[next..next + run(&text[next..], |byte| byte != b'\n')];
        let line_at = next;
        next = line_at + line.len() + 1;
        if line.starts_with(b"---") {
            if line_at > at {
                break;
            }
            continue;
        }
        end = end.max(line_at + line.len());
        if is_data(line, column) {
            next = match line.contains(&b'{') {
                true => in_braces(text, line_at, found).unwrap_or(next),
                false => block(text, next, column, found),
            };
        }
    }
    Some(end.max(at + 1))
}

/// Where the field `kind` begins whose value is at `at`.
fn kind(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at + b"secret".len()..)?;
    let is_end =
        rest.first().is_none_or(|byte| byte.is_ascii_whitespace() || is_quote(*byte) || *byte == b',');
    let before = &text[..at];
    if !is_end || !text[at..].starts_with(b"Secret") {
        return None;
    }
    let before = &before[..before.len() - run_back(before, 1, is_quote)];
    let before = &before[..before.len() - run_back(before, 8, |byte| byte == b' ')];
    let before = before.strip_suffix(b":")?;
    let before = &before[..before.len() - run_back(before, 1, is_quote)];
    let before = before.strip_suffix(b"kind")?;
    Some(before.len() - run_back(before, 1, is_quote))
}

/// How many bytes of whole lines before a manifest's kind belong to it.
fn run_back_lines(text: &[u8]) -> usize {
    let text = &text[text.len().saturating_sub(MANIFEST_BYTES_MAX)..];
    let begin = memchr::memmem::rfind(text, b"---\n").map_or(0, |at| at + 4);
    // A line that was cut off is no line.
    let begin = match begin {
        0 if text.len() == MANIFEST_BYTES_MAX => memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1),
        begin => begin,
    };
    text.len() - begin
}

/// Whether a line is `data:` at this column, with what is in it in braces or on the next lines.
fn is_data(line: &[u8], column: usize) -> bool {
    let Some(field) = line.get(column..) else { return false };
    let is_indent = line[..column].iter().all(|byte| matches!(byte, b' ' | b'-'));
    let behind = FIELDS.iter().find_map(|name| field.strip_prefix(*name)).map(<[u8]>::trim_ascii);
    is_indent && behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(b"{"))
}

/// The values of all lines that are indented deeper than `column`; gives where they end.
fn block(text: &[u8], mut at: usize, column: usize, found: &mut Vec<Range<usize>>) -> usize {
    while at < text.len() {
        let line = &text[at..at + run(&text[at..], |byte| byte != b'\n')];
        let indent = run(line, |byte| byte == b' ');
        let shown = line.trim_ascii_end();
        if !shown.is_empty() && indent <= column {
            break;
        }
        let from = memchr::memchr(b':', shown).map_or(indent, |colon| colon + 1);
        let from = from + run(&shown[from.min(shown.len())..], |byte| byte == b' ' || is_quote(byte));
        let end = shown.len() - run_back(shown, 1, is_quote);
        // The mark of a block of several lines.
        let is_mark = matches!(shown.get(from), Some(b'|' | b'>' | b'{'));
        if end >= from + VALUE_BYTES_MIN && !is_mark {
            found.push(at + from..at + end);
        }
        at += line.len() + 1;
    }
    at.min(text.len())
}

/// The values behind a colon in the braces that open behind `at`, if any do; gives where those
/// close, or up to where they were read.
fn in_braces(text: &[u8], at: usize, found: &mut Vec<Range<usize>>) -> Option<usize> {
    let open = at + run_within(&text[at..], 80, |byte| !matches!(byte, b'{' | b'\n'));
    if text.get(open) != Some(&b'{') {
        return None;
    }
    let limit = text.len().min(open + MANIFEST_BYTES_MAX);
    let (mut from, mut depth, mut is_value) = (open, 0_usize, false);
    while from < limit {
        match text[from] {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(from + 1),
            b'}' => depth -= 1,
            b':' => is_value = true,
            b',' => is_value = false,
            quote @ (b'"' | b'\'') => {
                let start = from + 1;
                let length = run(&text[start..limit], |byte| byte != quote && byte != b'\n');
                if is_value && length >= VALUE_BYTES_MIN {
                    found.push(start..start + length);
                }
                from = start + length;
            }
            byte if is_value && !byte.is_ascii_whitespace() => {
                let length = run(&text[from..limit], |byte| !matches!(byte, b',' | b'}' | b'\n'));
                let length = text[from..from + length].trim_ascii_end().len();
                if length >= VALUE_BYTES_MIN {
                    found.push(from..from + length);
                }
                from += length - 1;
            }
            _ => {}
        }
        from += 1;
    }
    Some(limit)
}

/// Where in whole lines a manifest begins whose data, or whose kind, may be in the next one.
pub(super) fn open_manifest(lines: &[u8]) -> Option<usize> {
    let cut = match lines.len().saturating_sub(OPEN_BYTES_MAX) {
        0 => 0,
        cut => cut + memchr::memchr(b'\n', &lines[cut..])? + 1,
    };
    let tail = &lines[cut..];
    let line_of = |at: usize| cut + memchr::memrchr(b'\n', &tail[..at]).map_or(0, |at| at + 1);
    for named in [&b"kind: Secret\n"[..], b"\"kind\": \"Secret\""] {
        if let Some(at) = memchr::memmem::rfind(tail, named)
            && memchr::memmem::find(&tail[at..], b"\n---").is_none()
        {
            // All of it, from where it may begin.
            let begin = memchr::memmem::rfind(&tail[..at], b"\n---").map_or(0, |at| at + 1);
            return Some(line_of(begin));
        }
    }
    let names = [
        &b"data:\n"[..],
        b"stringData:\n",
        b"data: {",
        b"stringData: {",
        b"\"data\": {\n",
        b"\"stringData\": {\n",
    ];
    let is_field = |at: &usize| at.checked_sub(1).is_none_or(|before| matches!(tail[before], b' ' | b'\n'));
    let last = names.iter().filter_map(|name| memchr::memmem::rfind(tail, name).filter(is_field)).max()?;
    let start = line_of(last);
    let line = &lines[start..];
    let column = run(line, |byte| byte == b' ');
    let mut below = line.split(|byte| *byte == b'\n').skip(1);
    let is_inside = |line: &[u8]| line.is_empty() || run(line, |byte| byte == b' ') > column;
    let is_close = |line: &[u8]| line.get(column) == Some(&b'}');
    below.all(|line| is_inside(line) || is_close(line)).then_some(start)
}
