//! Known values that do not stand in one piece: folded over several lines, as `fold` and `base64`
//! do, and in dumps of bytes, as `od` and `xxd` write them.
//!
//! A table of all groups of four bytes of the values tells which ends and beginnings of lines may
//! belong to one, so that only the text around those is looked at, each part of it once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

/// The bytes of a group.
const GROUP: usize = 4;
/// The size of the table, in bits as a power of two: the fewer groups, the smaller, so that it
/// stays in the fastest cache.
const TABLE_BITS: std::ops::RangeInclusive<u32> = 13..=20;
/// How far from the end of a line a folded value is looked for.
const REACH_BYTES_MAX: usize = 4 << 10;
/// So many bytes of a value in a dump are no chance.
const DUMPED_BYTES_MIN: usize = 6;

/// What tells where a value may lie in pieces.
#[derive(Debug)]
pub(super) struct Scattered {
    groups: Vec<u64>,
    /// How far a group's number is shifted to be a place in the table.
    shift: u32,
    /// The first one, two and three bytes of the values.
    beginnings: HashSet<Vec<u8>>,
    reach: usize,
    /// All parts of values that betray them in a dump.
    parts: OnceLock<HashSet<[u8; DUMPED_BYTES_MIN]>>,
}

fn group_bit(group: [u8; GROUP], shift: u32) -> usize {
    (u32::from_le_bytes(group).wrapping_mul(0x9e37_79b1) >> shift) as usize
}

impl Scattered {
    pub(super) fn new(values: &[String]) -> Self {
        let count: usize = values.iter().map(String::len).sum();
        let bits = (count * 32).next_power_of_two().ilog2().clamp(*TABLE_BITS.start(), *TABLE_BITS.end());
        let shift = 32 - bits;
        let mut groups = vec![0; (1 << bits) / 64];
        let mut beginnings = HashSet::new();
        for value in values.iter().map(String::as_bytes) {
            for group in value
                .windows(GROUP)
                .filter_map(|group| group.try_into().ok())
                .map(|group| group_bit(group, shift))
            {
                groups[group / 64] |= 1 << (group % 64);
            }
            beginnings.extend((1..GROUP).filter_map(|length| value.get(..length)).map(<[u8]>::to_vec));
        }
        let longest = values.iter().map(String::len).max().unwrap_or(0);
        Self { groups, shift, beginnings, reach: longest.min(REACH_BYTES_MAX), parts: OnceLock::new() }
    }

    fn has(&self, group: Option<&[u8]>) -> bool {
        group
            .and_then(|group| group.try_into().ok())
            .map(|group| group_bit(group, self.shift))
            .is_some_and(|group| self.groups[group / 64] >> (group % 64) & 1 != 0)
    }

    /// Whether a value may go on from before `fold` to behind it.
    fn is_fold(&self, text: &[u8], fold: &Range<usize>) -> bool {
        let before = &text[..fold.start];
        let after = &text[fold.end..];
        let across = match (before.last_chunk::<2>(), after.first_chunk::<2>()) {
            (Some(before), Some(after)) => self.has(Some(&[before[0], before[1], after[0], after[1]])),
            _ => false,
        };
        across
            || self.has(before.last_chunk::<GROUP>().map(|group| &group[..]))
            || self.has(after.get(..GROUP))
    }

    /// Adds what `find` finds in the text without the ends of its lines.
    pub(super) fn find_folded(
        &self,
        text: &[u8],
        mut find: impl FnMut(&[u8], &mut Vec<Range<usize>>),
        found: &mut Vec<Range<usize>>,
    ) {
        let mut region: Option<Range<usize>> = None;
        let mut joined = Joined::default();
        let mut inside = Vec::new();
        let mut look = |region: Range<usize>, found: &mut Vec<Range<usize>>| {
            joined.read(text, region);
            find(&joined.text, &mut inside);
            found.extend(inside.drain(..).map(|range| joined.original(&range)));
        };
        for at in memchr::memchr_iter(b'\n', text) {
            let fold = fold_at(text, at);
            if !self.is_fold(text, &fold) {
                continue;
            }
            let start = at.saturating_sub(2 * self.reach);
            let end = text.len().min(at.saturating_add(2 * self.reach));
            region = match region {
                Some(last) if start <= last.end => Some(last.start..end),
                Some(last) => {
                    look(last, found);
                    Some(start..end)
                }
                None => Some(start..end),
            };
        }
        if let Some(last) = region {
            look(last, found);
        }
    }

    /// Where in whole lines the last one begins that a value may go on from; with it the lines
    /// before it of which the same is true.
    pub(super) fn open_fold(&self, lines: &[u8]) -> Option<usize> {
        let text = lines.strip_suffix(b"\n").unwrap_or(lines);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let begins = (1..GROUP)
            .any(|length| text.len() >= length && self.beginnings.contains(&text[text.len() - length..]));
        if !begins && !self.has(text.last_chunk::<GROUP>().map(|group| &group[..])) {
            return None;
        }
        let mut start = text.len();
        while let Some(end) = memchr::memrchr(b'\n', &text[..start]) {
            start = end;
            if !self.is_fold(text, &fold_at(text, end)) || lines.len() - start > 2 * self.reach {
                return Some(end + 1);
            }
        }
        Some(0)
    }

    /// Adds where a value is dumped: its bytes as pairs of hexadecimal digits with signs between
    /// them, and in the same line as text.
    pub(super) fn find_dumped(&self, text: &[u8], values: &[String], found: &mut Vec<Range<usize>>) {
        /// Six bytes in groups of two, the shortest dump that matters, have so many characters.
        const DUMP_BYTES_MIN: usize = 14;
        /// So many characters of a dump have a digit and a sign among them.
        const SEEN: usize = 5;
        /// No dump lies between two looks.
        const STEP: usize = DUMP_BYTES_MIN - SEEN + 1;
        let mut bytes = Vec::new();
        let mut at = 0;
        let mut done = 0;
        while let Some(seen) = text.get(at..).and_then(|rest| rest.first_chunk::<SEEN>()) {
            // One look at all of them: most are none, and a branch for each would be guessed
            // wrongly.
            let kinds = seen.iter().fold(0, |kinds, byte| kinds | KINDS[usize::from(*byte)]);
            if kinds != DIGIT | BETWEEN {
                at += STEP;
                continue;
            }
            let is_in = |byte: &&u8| KINDS[usize::from(**byte)] != OTHER;
            let start = at - text[done..at].iter().rev().take_while(is_in).count();
            let end = at + text[at..].iter().take_while(is_in).count();
            if end - start >= DUMP_BYTES_MIN {
                self.in_dump(text, start..end, values, &mut bytes, found);
            }
            (at, done) = (end, end);
        }
    }

    fn in_dump(
        &self,
        text: &[u8],
        dump: Range<usize>,
        values: &[String],
        bytes: &mut Vec<(u8, usize)>,
        found: &mut Vec<Range<usize>>,
    ) {
        let mut is_found = false;
        let mut at = dump.start;
        let mut look = |bytes: &mut Vec<(u8, usize)>| {
            if bytes.len() >= DUMPED_BYTES_MIN {
                for window in bytes.windows(DUMPED_BYTES_MIN) {
                    let group: [u8; GROUP] = std::array::from_fn(|n| window[n].0);
                    if !self.has(Some(&group)) {
                        continue;
                    }
                    let parts = self.parts.get_or_init(|| parts(values));
                    if parts.contains(&std::array::from_fn(|n| window[n].0)) {
                        found.push(window[0].1..window[DUMPED_BYTES_MIN - 1].1 + 2);
                        is_found = true;
                    }
                }
            }
            bytes.clear();
        };
        while at < dump.end {
            let digits = text[at..dump.end].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            // An odd number of digits is the place of the line in the file.
            if digits % 2 == 1 {
                look(bytes);
            } else {
                let digit = |at: usize| char::from(text[at]).to_digit(16).unwrap_or(0) as u8;
                bytes.extend((at..at + digits).step_by(2).map(|at| (digit(at) << 4 | digit(at + 1), at)));
            }
            at += digits.max(1);
        }
        look(bytes);
        if !is_found {
            return;
        }
        let rest = &text[dump.end..];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len()).min(REACH_BYTES_MAX)];
        let parts = self.parts.get_or_init(|| parts(values));
        for (at, window) in line.windows(DUMPED_BYTES_MIN).enumerate() {
            if window.try_into().is_ok_and(|window: [u8; DUMPED_BYTES_MIN]| parts.contains(&window)) {
                found.push(dump.end + at..dump.end + at + DUMPED_BYTES_MIN);
            }
        }
    }
}

fn parts(values: &[String]) -> HashSet<[u8; DUMPED_BYTES_MIN]> {
    values
        .iter()
        .flat_map(|value| value.as_bytes().windows(DUMPED_BYTES_MIN))
        .filter_map(|part| part.try_into().ok())
        .collect()
}

/// The end of a line and the indentation of the next one.
fn fold_at(text: &[u8], newline: usize) -> Range<usize> {
    const INDENT_BYTES_MAX: usize = 16;
    let start = newline - usize::from(text[..newline].ends_with(b"\r"));
    let blanks =
        text[newline + 1..].iter().take(INDENT_BYTES_MAX).take_while(|byte| matches!(byte, b' ' | b'\t'));
    start..newline + 1 + blanks.count()
}

/// A text without the ends of its lines.
#[derive(Debug, Default)]
struct Joined {
    text: Vec<u8>,
    /// Where a part begins here, and in the original.
    parts: Vec<(usize, usize)>,
}

impl Joined {
    fn read(&mut self, text: &[u8], range: Range<usize>) {
        self.text.clear();
        self.parts.clear();
        let mut done = range.start;
        for newline in memchr::memchr_iter(b'\n', &text[range.clone()]) {
            let fold = fold_at(text, range.start + newline);
            self.add(text, done..fold.start.max(done));
            done = fold.end.min(range.end);
        }
        self.add(text, done..range.end);
    }

    fn add(&mut self, text: &[u8], part: Range<usize>) {
        if !part.is_empty() {
            self.parts.push((self.text.len(), part.start));
            self.text.extend_from_slice(&text[part]);
        }
    }

    fn original(&self, range: &Range<usize>) -> Range<usize> {
        let at = |place: usize| {
            let next = self.parts.partition_point(|(begin, _)| *begin <= place);
            next.checked_sub(1).map_or(0, |part| self.parts[part].1 + (place - self.parts[part].0))
        };
        at(range.start)..at(range.end.saturating_sub(1)) + 1
    }
}

/// What a byte is in a dump: both of these are in each part of one, and nothing else.
const DIGIT: u8 = 1;
const BETWEEN: u8 = 2;
const OTHER: u8 = 4;

static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => DIGIT,
            b' ' | b'\t' | b':' | b'-' | b',' => BETWEEN,
            _ => OTHER,
        };
        byte += 1;
    }
    kinds
}

#[cfg(test)]
mod tests {
    use crate::Redactor;

    const VALUE: &str = "Kx7Qm2Zp9Wt4Rb6Yh1Ns8Vd3";

    #[test]
    fn a_folded_value_is_masked_wherever_it_is_folded() {
        let redactor = Redactor::new([VALUE, "swordfish-7"]);
        for width in 4..VALUE.len() {
            let lines: Vec<&str> =
                VALUE.as_bytes().chunks(width).map(|part| str::from_utf8(part).unwrap()).collect();
            for between in ["\n", "\r\n", "\n    "] {
                let text = format!("before\n{}\nafter\n", lines.join(between));
                assert_eq!(redactor.redact(&text), "before\n[redacted]\nafter\n", "{width} {between:?}");
                for step in [1, 5, 9, 1000] {
                    let mut stream = redactor.stream();
                    let mut out: String =
                        text.as_bytes().chunks(step).map(|piece| stream.push(piece)).collect();
                    out.push_str(&stream.finish());
                    assert_eq!(out, "before\n[redacted]\nafter\n", "{width} {between:?} {step}");
                }
            }
        }
        for at in 1.."swordfish-7".len() {
            let (first, second) = "swordfish-7".split_at(at);
            assert_eq!(redactor.redact(&format!("x {first}\n{second} y")), "x [redacted] y");
        }
        assert_eq!(redactor.redact("a sword\nfish-8"), "a sword\nfish-8");
    }

    #[test]
    fn a_value_in_a_dump_is_masked() {
        let redactor = Redactor::new([VALUE]);
        let pairs: Vec<String> = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let dumps = [
            format!(" {}\n {}\n", pairs[..16].join(" "), pairs[16..].join(" ")),
            format!("{}\n", pairs.join(":").to_uppercase()),
            format!(
                "00000000: {}  {}\n",
                pairs[..16].chunks(2).map(<[String]>::concat).collect::<Vec<_>>().join(" "),
                &VALUE[..16]
            ),
            format!("00000000  {}  {}  |{}|\n", pairs[..8].join(" "), pairs[8..16].join(" "), &VALUE[..16]),
            format!("0000000 {}\n", pairs[..16].join(" ")),
        ];
        for dump in dumps {
            let masked = redactor.redact(&dump);
            for from in 0..VALUE.len() - 7 {
                let part = &VALUE[from..from + 7];
                assert!(!masked.contains(part), "{masked}");
                for between in [" ", ":", "  "] {
                    let part = pairs[from..from + 7].join(between);
                    assert!(!masked.to_lowercase().contains(&part), "{masked}");
                }
            }
        }
        let other = "00000000: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF............\n04:39:31 12:00:00 a b c d e f\n";
        assert_eq!(redactor.redact(other), other);
    }
}
