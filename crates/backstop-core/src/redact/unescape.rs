//! Text as a reader would see it: without colour codes, and with JSON, shell, URL and HTML escapes
//! undone, so that a secret is found however it is written. Each byte knows where it came from, so
//! that what is masked is masked in the original.
//!
//! Escapes may be nested (JSON in JSON, `%2522`, `&amp;quot;`): all levels are undone at once.

use std::ops::Range;

/// The longest escape sequence of a terminal that is passed over: a title, a link.
const SEQUENCE_BYTES_MAX: usize = 4 << 10;
/// How many levels of nesting are undone. Each doubles the backslashes before a character.
const LEVELS_MAX: usize = 6;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// The bytes with which an escape begins, and the control characters that are invisible.
static IS_SPECIAL: [bool; 256] = specials();

const fn specials() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte as u8, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
        byte += 1;
    }
    table[0x7f] = true;
    table[b'\\' as usize] = true;
    table[b'%' as usize] = true;
    table[b'&' as usize] = true;
    let mut at = 0;
    while at < INVISIBLE.len() {
        table[INVISIBLE[at].as_bytes()[0] as usize] = true;
        at += 1;
    }
    table
}

/// Characters that a reader does not see.
const INVISIBLE: &[&str] = &[
    "\u{ad}", "\u{200b}", "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}", "\u{2060}", "\u{2061}", "\u{2062}",
    "\u{2063}", "\u{2064}", "\u{feff}",
];

/// The length of a character that a reader does not see, if one is here.
fn invisible_at(bytes: &[u8], at: usize) -> Option<usize> {
    INVISIBLE.iter().find(|one| bytes[at..].starts_with(one.as_bytes())).map(|one| one.len())
}

/// Where the next of them is.
fn next_invisible(bytes: &[u8]) -> Option<usize> {
    memchr::memchr3_iter(0xc2, 0xe2, 0xef, bytes).find(|at| invisible_at(bytes, *at).is_some())
}

/// A part of the readable text, and where it came from.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Where it begins in the readable text.
    begin: usize,
    /// Where it begins in the original.
    original: usize,
    /// The length of the escape that all its bytes stand for; 0 where bytes are as they were.
    escape_bytes: usize,
}

/// A text as a reader would see it.
#[derive(Debug, Default)]
pub(super) struct Readable {
    text: Vec<u8>,
    segments: Vec<Segment>,
}

/// The lines of a text that may hold escapes.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    bytes: &'t [u8],
    from: usize,
    /// The next bytes of either kind, so that none is looked for twice.
    next: [Option<usize>; 3],
}

/// Finds the next byte of a kind.
type Search = fn(&[u8]) -> Option<usize>;

impl<'t> Lines<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Self {
        Self { bytes, from: 0, next: [Some(0); 3] }
    }

    fn next_special(&mut self) -> Option<usize> {
        let search: [Search; 3] = [
            |rest| memchr::memchr3(ESC, b'\\', b'%', rest),
            |rest| memchr::memchr3(b'&', 0, 8, rest),
            next_invisible,
        ];
        for (next, search) in self.next.iter_mut().zip(search) {
            if next.is_some_and(|at| at <= self.from) {
                *next = search(&self.bytes[self.from..]).map(|at| self.from + at);
            }
        }
        self.next.into_iter().flatten().min()
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let special = self.next_special()?;
        let before = &self.bytes[self.from..special];
        let start = memchr::memrchr(b'\n', before).map_or(self.from, |at| self.from + at + 1);
        let mut end = special;
        loop {
            end = memchr::memchr(b'\n', &self.bytes[end..]).map_or(self.bytes.len(), |at| end + at + 1);
            // A backslash before its end takes the next line with it.
            if end == self.bytes.len() || !self.bytes[..end].ends_with(b"\\\n") {
                break;
            }
        }
        self.from = end;
        Some(start..end)
    }
}

/// What became of the escapes in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    /// There are none.
    Nothing,
    /// Colour codes were removed: nothing else could have been meant.
    Removed,
    /// Something was read as an escape that may be meant as it is.
    Replaced,
}

impl Readable {
    /// Undoes the escapes in `range` of the original.
    pub(super) fn read(&mut self, original: &[u8], range: Range<usize>) -> Undone {
        self.text.clear();
        self.segments.clear();
        let bytes = &original[..range.end];
        let mut done = range.start;
        let mut from = range.start;
        let mut undone = Undone::Nothing;
        let next = |from: usize| {
            bytes[from..].iter().position(|byte| IS_SPECIAL[usize::from(*byte)]).map(|at| from + at)
        };
        while let Some(at) = next(from) {
            let Some(escape) = escape_at(bytes, at) else {
                from = at + 1;
                continue;
            };
            self.copy(bytes, done..at);
            if escape.meaning_bytes > 0 || matches!(bytes[at], b'\\' | b'%' | b'&') {
                undone = Undone::Replaced;
            } else if undone == Undone::Nothing {
                undone = Undone::Removed;
            }
            if escape.meaning_bytes > 0 {
                let begin = self.text.len();
                self.segments.push(Segment { begin, original: at, escape_bytes: escape.length });
                self.text.extend_from_slice(&escape.meaning[..escape.meaning_bytes]);
            }
            done = at + escape.length;
            from = done;
        }
        if undone != Undone::Nothing {
            self.copy(bytes, done..range.end);
        }
        undone
    }

    fn copy(&mut self, bytes: &[u8], range: Range<usize>) {
        if !range.is_empty() {
            let begin = self.text.len();
            self.segments.push(Segment { begin, original: range.start, escape_bytes: 0 });
            self.text.extend_from_slice(&bytes[range]);
        }
    }

    /// The readable text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where a part of the readable text was in the original.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let (start, end) = (self.source(range.start), self.source(range.end.saturating_sub(1)));
        start.start..end.end.max(start.end)
    }

    /// The original bytes that one byte of the readable text stands for.
    fn source(&self, at: usize) -> Range<usize> {
        let next = self.segments.partition_point(|segment| segment.begin <= at);
        let Some(segment) = next.checked_sub(1).map(|index| self.segments[index]) else { return 0..0 };
        match segment.escape_bytes {
            0 => {
                let byte = segment.original + (at - segment.begin);
                byte..byte + 1
            }
            length => segment.original..segment.original + length,
        }
    }
}

/// An escape: how long it is, and the bytes that it means. None for a colour code.
#[derive(Debug, Clone, Copy)]
struct Escape {
    length: usize,
    meaning: [u8; 4],
    meaning_bytes: usize,
}

impl Escape {
    fn nothing(length: usize) -> Self {
        Self { length, meaning: [0; 4], meaning_bytes: 0 }
    }

    fn byte(length: usize, byte: u8) -> Self {
        Self { length, meaning: [byte, 0, 0, 0], meaning_bytes: 1 }
    }

    fn character(length: usize, code: u32) -> Self {
        let mut meaning = [0; 4];
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        if INVISIBLE.iter().any(|one| one.starts_with(character)) {
            return Self::nothing(length);
        }
        let meaning_bytes = character.encode_utf8(&mut meaning).len();
        Self { length, meaning, meaning_bytes }
    }
}

fn escape_at(bytes: &[u8], at: usize) -> Option<Escape> {
    match bytes[at] {
        ESC => Some(Escape::nothing(1 + sequence(bytes, at + 1))),
        b'\\' => backslash(bytes, at),
        b'%' => percent(bytes, at),
        b'&' => entity(bytes, at),
        0x80.. => invisible_at(bytes, at).map(Escape::nothing),
        _ => Some(Escape::nothing(1)),
    }
}

/// The length of a terminal's escape sequence after its first byte.
fn sequence(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at.min(bytes.len())..];
    let rest = &rest[..rest.len().min(SEQUENCE_BYTES_MAX)];
    match rest.first() {
        Some(b'[') => {
            let parameters = rest[1..].iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
            1 + parameters + usize::from(rest.get(1 + parameters).is_some_and(|b| (0x40..0x7f).contains(b)))
        }
        Some(b']' | b'P' | b'_' | b'^') => match memchr::memchr3(BEL, ESC, b'\n', rest) {
            Some(end) if rest[end] == BEL => end + 1,
            Some(end) if rest[end] == ESC && rest.get(end + 1) == Some(&b'\\') => end + 2,
            Some(end) => end,
            None => 1,
        },
        Some(b'(' | b')' | b'#') => rest.len().min(2),
        Some(0x40..=0x7e) => 1,
        _ => 0,
    }
}

fn hex(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let text = bytes.get(at..at + digits)?;
    text.iter().try_fold(0, |sum, byte| Some(sum << 4 | char::from(*byte).to_digit(16)?))
}

/// `\n`, `\"`, `\u0022`, `\x1b`, `\033`, and a line that goes on: with one backslash or more.
fn backslash(bytes: &[u8], at: usize) -> Option<Escape> {
    let most = 1 << LEVELS_MAX;
    let slashes = bytes[at..].iter().take(most).take_while(|byte| **byte == b'\\').count();
    let letter = at + slashes;
    let code = |digits: usize| hex(bytes, letter + 1, digits).map(|code| (code, slashes + 1 + digits));
    let found = match *bytes.get(letter)? {
        b'n' | b'r' => Escape::byte(slashes + 1, b'\n'),
        b't' => Escape::byte(slashes + 1, b'\t'),
        b'\n' => Escape::byte(slashes + 1, b' '),
        b'u' => match code(4) {
            Some((code, length)) => Escape::character(length, code),
            None => return None,
        },
        b'x' => match code(2) {
            Some((code, length)) => Escape::character(length, code),
            None => return None,
        },
        b'e' => Escape::byte(slashes + 1, ESC),
        b'0' if bytes.get(letter..letter + 3) == Some(b"033") => Escape::byte(slashes + 3, ESC),
        quoted if quoted.is_ascii_punctuation() || quoted == b' ' => Escape::byte(slashes + 1, quoted),
        _ => return None,
    };
    // A colour code that was escaped is one nevertheless; other control characters are not seen.
    match found.meaning {
        [ESC, 0, 0, 0] => {
            let length = sequence(bytes, at + found.length);
            (length > 0 || bytes[letter] != b'e').then(|| Escape::nothing(found.length + length))
        }
        [control, 0, 0, 0] if IS_SPECIAL[usize::from(control)] && control < 0x20 => {
            Some(Escape::nothing(found.length))
        }
        _ => Some(found),
    }
}

/// `%22`, `%2522`.
fn percent(bytes: &[u8], at: usize) -> Option<Escape> {
    let mut digits = at + 1;
    for _ in 0..LEVELS_MAX {
        let nested = hex(bytes, digits, 2) == Some(0x25) && hex(bytes, digits + 2, 2).is_some();
        digits += if nested { 2 } else { 0 };
    }
    let code = hex(bytes, digits, 2)?;
    let byte = u8::try_from(code).ok()?;
    let length = digits + 2 - at;
    if let Some(more) = invisible_in_percents(bytes, byte, at + length) {
        return Some(Escape::nothing(length + more));
    }
    match byte {
        ESC => Some(Escape::nothing(length + sequence(bytes, at + length))),
        byte if IS_SPECIAL[usize::from(byte)] && byte < 0x20 => Some(Escape::nothing(length)),
        byte => Some(Escape::byte(length, byte)),
    }
}

/// How long the rest of a character is that a reader does not see, where `first` is its first byte
/// and the others follow as `%8B`.
fn invisible_in_percents(bytes: &[u8], first: u8, at: usize) -> Option<usize> {
    INVISIBLE.iter().map(|one| one.as_bytes()).filter(|one| one[0] == first).find_map(|one| {
        let is_there = |(n, byte): (usize, &u8)| {
            bytes.get(at + 3 * n) == Some(&b'%') && hex(bytes, at + 3 * n + 1, 2) == Some(u32::from(*byte))
        };
        one[1..].iter().enumerate().all(is_there).then(|| 3 * (one.len() - 1))
    })
}

/// HTML's names for characters that matter around a secret.
const ENTITIES: &[(&[u8], u8)] =
    &[(b"quot;", b'"'), (b"apos;", b'\''), (b"lt;", b'<'), (b"gt;", b'>'), (b"nbsp;", b' '), (b"amp;", b'&')];

/// `&quot;`, `&#34;`, `&#x22;`, `&amp;quot;`.
fn entity(bytes: &[u8], at: usize) -> Option<Escape> {
    const AMP: &[u8] = b"amp;";
    let mut name = at + 1;
    for _ in 0..LEVELS_MAX {
        let is_nested = |from: usize| {
            bytes[from..].first() == Some(&b'#')
                || ENTITIES.iter().any(|(entity, _)| bytes[from..].starts_with(entity))
        };
        if bytes[name..].starts_with(AMP) && is_nested(name + AMP.len()) {
            name += AMP.len();
        }
    }
    let rest = &bytes[name..];
    let before = name - at;
    if let Some((text, byte)) = ENTITIES.iter().find(|(text, _)| rest.starts_with(text)) {
        return Some(Escape::byte(before + text.len(), *byte));
    }
    let number = rest.strip_prefix(b"#")?;
    let (digits, radix) = match number.first()? {
        b'x' | b'X' => (&number[1..], 16),
        _ => (number, 10),
    };
    let count = digits.iter().take(7).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    if count == 0 || digits.get(count) != Some(&b';') {
        return None;
    }
    let code = u32::from_str_radix(std::str::from_utf8(&digits[..count]).ok()?, radix).ok()?;
    let length = before + 1 + (number.len() - digits.len()) + count + 1;
    Some(Escape::character(length, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readable(text: &str) -> String {
        let mut readable = Readable::default();
        match readable.read(text.as_bytes(), 0..text.len()) {
            Undone::Nothing => text.to_owned(),
            _ => String::from_utf8_lossy(readable.text()).into_owned(),
        }
    }

    #[test]
    fn escapes_are_undone() {
        for (text, want) in [
            ("plain", "plain"),
            ("50% done & \\o/", "50% done & \\o/"),
            ("a\x1b[1;31mb\x1b[0mc", "abc"),
            ("a\x1b]8;;http://x\x07b\x1b]0;t\x1b\\c", "abc"),
            ("a\\u001b[31mb\\x1b[0mc\\033[0md\\e[0me", "abcde"),
            ("{\\\"a\\\":\\\"b\\\"}\\n", "{\"a\":\"b\"}\n"),
            ("\\\\\\\"x\\\\u0022", "\"x\""),
            ("p%3Da%2520b", "p=a b"),
            ("&quot;a&#34;&#x3d;&amp;quot;&lt;", "\"a\"=\"<"),
            ("go \\\n on", "go   on"),
            ("nu\0ll", "null"),
            ("pass\u{200b}wo\u{ad}rd\u{feff}\u{2060}", "password"),
            ("pass%E2%80%8bword\\u200b=%C2%ADx%C2%A9", "password=x©"),
            ("“é” — ﬁ", "“é” — ﬁ"),
        ] {
            assert_eq!(readable(text), want, "{text:?}");
        }
    }

    #[test]
    fn what_is_found_is_found_in_the_original() {
        let text = "a \\\"k\x1b[1mey%3D\\u0041B\\\" z";
        let mut view = Readable::default();
        assert_eq!(view.read(text.as_bytes(), 0..text.len()), Undone::Replaced);
        let found = memchr::memmem::find(view.text(), b"key=AB").unwrap();
        assert_eq!(&text[view.original(&(found..found + 6))], "k\x1b[1mey%3D\\u0041B");
    }

    proptest! {
        #[test]
        fn every_byte_comes_from_somewhere(text in "([a-z]|\\\\|%2|25|22|&amp;|&quot;|\x1b\\[|m|u00|é|\n){0,40}") {
            let mut view = Readable::default();
            if view.read(text.as_bytes(), 0..text.len()) != Undone::Nothing {
                let mut last = 0;
                for at in 0..view.text().len() {
                    let source = view.original(&(at..at + 1));
                    prop_assert!(source.start >= last && source.end <= text.len() && !source.is_empty());
                    last = source.start;
                }
            }
        }
    }
}
