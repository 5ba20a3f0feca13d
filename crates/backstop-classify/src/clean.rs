//! Takes what a terminal would act on out of bytes: escape sequences and NULs. Line ends stay, so
//! line numbers hold.

use memchr::{memchr, memchr2};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// How far the end of a string sequence (a title, a link) is looked for.
const SEQUENCE_BYTES_MAX: usize = 4096;

/// Cleans `text[from..]` in place and cuts `text` to what is left. Text without escapes or NULs is
/// not touched.
pub(crate) fn clean(text: &mut Vec<u8>, from: usize) {
    let Some(first) = memchr2(ESC, 0, &text[from..]) else { return };
    let mut to = from + first;
    let mut at = to;
    let end = text.len();
    while at < end {
        let skipped = if text[at] == 0 { 1 } else { sequence(&text[at..end]) };
        at += skipped;
        let next = memchr2(ESC, 0, &text[at..end]).map_or(end, |n| at + n);
        text.copy_within(at..next, to);
        to += next - at;
        at = next;
    }
    text.truncate(to);
}

/// The length of the escape sequence at the start of `text`. It never reaches over a line end.
fn sequence(text: &[u8]) -> usize {
    match text.get(1) {
        // CSI: parameters, then one final byte.
        Some(b'[') => {
            let body = text[2..].iter().take_while(|b| (0x20..0x40).contains(*b)).count();
            let last = text.get(2 + body).is_some_and(|b| (0x40..0x7f).contains(b));
            2 + body + usize::from(last)
        }
        // OSC, DCS, APC, PM: up to BEL or ESC \.
        Some(b']' | b'P' | b'_' | b'^') => {
            let window = &text[2..text.len().min(SEQUENCE_BYTES_MAX)];
            let line = memchr(b'\n', window).unwrap_or(window.len());
            match memchr2(BEL, ESC, &window[..line]) {
                Some(n) if window[n] == BEL => 2 + n + 1,
                Some(n) if window.get(n + 1) == Some(&b'\\') => 2 + n + 2,
                Some(n) => 2 + n,
                None => 2,
            }
        }
        Some(b'(' | b')' | b'#') => 3.min(text.len()),
        Some(b'\n') | None => 1,
        Some(_) => 2,
    }
}

/// The part of a line that was on the screen last at `at`: progress bars write over themselves with
/// CR.
pub(crate) fn visible(line: &[u8], at: usize) -> &[u8] {
    let at = at.min(line.len());
    let start = memchr::memrchr(b'\r', &line[..at]).map_or(0, |n| n + 1);
    let end = memchr(b'\r', &line[at..]).map_or(line.len(), |n| at + n);
    &line[start..end]
}

/// A line without the timestamp that CI services and BuildKit write in front of every line.
pub(crate) fn without_timestamp(line: &[u8]) -> &[u8] {
    if line.first() == Some(&b'#') {
        return without_step(line).unwrap_or(line);
    }
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    if line.len() < SHAPE.len() + 2 || !line[0].is_ascii_digit() {
        return line;
    }
    let fits = SHAPE.iter().zip(line).all(|(s, b)| if *s == b'd' { b.is_ascii_digit() } else { s == b });
    if !fits {
        return line;
    }
    let rest = &line[SHAPE.len()..];
    let fraction = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    match rest.get(fraction..fraction + 2) {
        Some(b"Z ") => &rest[fraction + 2..],
        _ => line,
    }
}

/// A line of BuildKit without the number of its step and the seconds: `#12 3.456 cc -c a.c`.
fn without_step(line: &[u8]) -> Option<&[u8]> {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = &line[1..];
    let step = digits(rest);
    let rest = rest.get(step..)?.strip_prefix(b" ")?;
    let whole = digits(rest);
    let rest = rest.get(whole..)?.strip_prefix(b".")?;
    let part = digits(rest);
    let rest = rest.get(part..)?.strip_prefix(b" ")?;
    (step > 0 && whole > 0 && part > 0).then_some(rest)
}

/// A line without the head that Kubernetes' tools write in front of a message that is logged:
/// `E1118 17:00:00.123456   4711 memcache.go:265] message`. `None` if it has none.
pub(crate) fn logged_message(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let is_head = bytes.len() > 22
        && b"EWIF".contains(&bytes[0])
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && bytes[5] == b' '
        && bytes[8] == b':'
        && bytes[11] == b':';
    let end = line.find("] ").filter(|_| is_head)?;
    line[..end].contains(".go:").then(|| &line[end + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        clean(&mut bytes, 0);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        assert_eq!(cleaned("\x1b[1m\x1b[91merror\x1b[0m: x"), "error: x");
        assert_eq!(cleaned("\x1b]8;;http://x\x07link\x1b]8;;\x07!"), "link!");
        assert_eq!(cleaned("\x1b]0;title\x1b\\rest"), "rest");
        assert_eq!(cleaned("a\x1b(Bb\x1b=c"), "abc");
        assert_eq!(cleaned("F\0a\0t\0a\0l\0"), "Fatal");
        assert_eq!(cleaned("cut \x1b[3"), "cut ");
        assert_eq!(cleaned("open \x1b]0;never closed\nnext"), "open 0;never closed\nnext");
        assert_eq!(cleaned("\x1b\n\x1b"), "\n");
        assert_eq!(cleaned("plain"), "plain");
    }

    #[test]
    fn progress_is_what_was_seen_last() {
        assert_eq!(visible(b"10%\r50%\rerror: x\r", 9), b"error: x");
        assert_eq!(visible(b"no returns", 3), b"no returns");
    }

    #[test]
    fn timestamps_of_ci_are_looked_through() {
        assert_eq!(without_timestamp(b"2024-05-01T10:00:00.1234567Z ##[error]x"), b"##[error]x");
        assert_eq!(without_timestamp(b"2024-05-01T10:00:00 x"), b"2024-05-01T10:00:00 x");
        assert_eq!(without_timestamp(b"#12 3.456 a.c:1:2: error: x"), b"a.c:1:2: error: x");
        for line in [&b"#12 ERROR: process"[..], b"# 3.4 x", b"#12 3 x", b"#", b"#include <a.h>"] {
            assert_eq!(without_timestamp(line), line);
        }
    }

    #[test]
    fn the_head_of_a_logged_message_is_found() {
        let line =
            "E1118 17:00:00.123456    4711 memcache.go:265] couldn't get current server API group list";
        assert_eq!(logged_message(line), Some("couldn't get current server API group list"));
        for line in [
            "E1118 x] y",
            "",
            "Error from server (NotFound): pods \"x\" not found",
            "W1118 17:00:00 [a] b c d e",
        ] {
            assert_eq!(logged_message(line), None, "{line}");
        }
    }
}
