//! Masking text that comes in pieces: a secret may be cut anywhere.

use super::known::Known;
use super::shapes::{KEY_BYTES_MAX, begins_key, ends_key, has_key_mark, is_key_byte, open_value};
use super::{MASK, Redactor};
use std::ops::Deref;

/// How much of a line without an end is held back before it is let go.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How much of it stays behind then, in case a secret goes on.
const OVERLAP_BYTES: usize = 4 << 10;

/// How much is held back of whole lines after which a secret may go on.
const HELD_LINES_BYTES_MAX: usize = 16 << 10;

/// Masks secrets in text that comes in pieces. What comes out lags behind by up to a line.
#[derive(Debug)]
pub struct RedactStream<R> {
    redactor: R,
    held: Vec<u8>,
    /// Inside a private key: how many bytes of it were dropped.
    in_key: Option<usize>,
    /// A secret was cut: what still belongs to it is dropped.
    in_secret: bool,
}

impl Redactor {
    /// Masks text that comes in pieces.
    pub fn stream(&self) -> RedactStream<&Redactor> {
        RedactStream::new(self)
    }
}

impl<R: Deref<Target = Redactor>> RedactStream<R> {
    /// Masks text that comes in pieces, with a redactor that it may share.
    pub fn new(redactor: R) -> Self {
        Self { redactor, held: Vec::new(), in_key: None, in_secret: false }
    }

    /// More text; gives what is safe to let go. Bytes that are no UTF-8 come out as replacement
    /// characters.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        for piece in bytes.chunks(LINE_BYTES_MAX) {
            self.held.extend_from_slice(piece);
            if let Some(end) = memchr::memrchr(b'\n', &self.held) {
                let go = self.go_until(&self.held[..=end]);
                if go > 0 {
                    let lines: Vec<u8> = self.held.drain(..go).collect();
                    self.lines(&String::from_utf8_lossy(&lines), &mut out);
                }
            }
            if self.held.len() > LINE_BYTES_MAX {
                self.part(&mut out);
            }
        }
        out
    }

    /// How much of these whole lines may go: a secret may go on in the next one.
    fn go_until(&self, lines: &[u8]) -> usize {
        if self.in_key.is_some() {
            return lines.len();
        }
        let fold = self.redactor.with_known(|known| known.and_then(|known| known.open_fold(lines)));
        let go = [fold, open_value(lines)].into_iter().flatten().min().unwrap_or(lines.len());
        if lines.len() - go > HELD_LINES_BYTES_MAX { lines.len() } else { go }
    }

    /// The text is over; gives the rest.
    pub fn finish(mut self) -> String {
        let mut out = String::new();
        let rest = std::mem::take(&mut self.held);
        if !rest.is_empty() {
            self.lines(&String::from_utf8_lossy(&rest), &mut out);
        }
        out
    }

    /// Whole lines: all at once, unless one of them has to do with a private key.
    fn lines(&mut self, lines: &str, out: &mut String) {
        if !self.in_secret && self.in_key.is_none() && !has_key_mark(lines.as_bytes()) {
            out.push_str(&self.redactor.redact(lines));
            return;
        }
        for line in lines.split_inclusive('\n') {
            self.line(line, out);
        }
    }

    fn line(&mut self, mut line: &str, out: &mut String) {
        if self.in_secret {
            line = line.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_key_byte));
            self.in_secret = line.is_empty();
        }
        if let Some(dropped) = self.in_key {
            let dropped = dropped + line.len();
            self.in_key = (!ends_key(line.as_bytes()) && dropped < KEY_BYTES_MAX).then_some(dropped);
            return;
        }
        // A private key goes over many lines: its head announces it, and nothing is let go before
        // its end.
        if let Some(at) = begins_key(line.as_bytes()) {
            self.in_key = Some(line.len() - at);
            out.push_str(&self.redactor.redact(&line[..at]));
            out.push_str(MASK);
            out.push('\n');
            return;
        }
        out.push_str(&self.redactor.redact(line));
    }

    /// Lets a part of an endless line go, cut where no secret lies.
    fn part(&mut self, out: &mut String) {
        let mut text = String::from_utf8_lossy(&self.held).into_owned();
        if self.in_secret {
            let rest = text.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_key_byte));
            self.in_secret = rest.is_empty();
            text = rest.to_owned();
        }
        let known = self.redactor.with_known(|known| known.map_or(0, Known::bytes_max));
        let overlap = OVERLAP_BYTES.max(known).min(LINE_BYTES_MAX);
        let mut cut = text.floor_char_boundary(text.len().saturating_sub(overlap));
        let mut in_secret = false;
        if let Some(secret) = self.redactor.secrets(&text).into_iter().find(|s| s.start < cut && cut < s.end)
        {
            // What goes is more than what stays: else it would be looked at again and again.
            if secret.start > text.len() / 2 {
                cut = secret.start;
            } else {
                cut = secret.end;
                in_secret = secret.end == text.len();
            }
        }
        let (go, stay) = text.split_at(cut);
        self.held = stay.as_bytes().to_vec();
        self.lines(go, out);
        self.in_secret |= in_secret;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(redactor: &Redactor, text: &[u8], step: usize) -> String {
        let mut stream = redactor.stream();
        let mut out = String::new();
        for piece in text.chunks(step.max(1)) {
            out.push_str(&stream.push(piece));
        }
        out.push_str(&stream.finish());
        out
    }

    #[test]
    fn a_secret_cut_anywhere_is_masked() {
        let redactor = Redactor::new(["C4n4ry-Value"]);
        let text = "one\nuse C4n4ry-Value now\nand ghp_0123456789abcdefghijABCDEFGHIJ\nlast C4n4ry-Value";
        let want = "one\nuse [redacted] now\nand [redacted]\nlast [redacted]";
        for step in 1..text.len() {
            assert_eq!(through(&redactor, text.as_bytes(), step), want, "step {step}");
        }
    }

    #[test]
    fn a_private_key_goes_line_by_line_and_none_of_it_stays() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEbody1\nMIIEbody2\n-----END RSA PRIVATE KEY-----\n";
        let text = format!("before\n{key}after\n");
        for step in [1, 7, 40, 1000] {
            assert_eq!(through(&Redactor::default(), text.as_bytes(), step), "before\n[redacted]\nafter\n");
        }
    }

    #[test]
    fn an_endless_line_is_let_go_in_parts_and_hides_nothing() {
        let redactor = Redactor::new(["C4n4ry-Value"]);
        for offset in (0..70_000).step_by(6_997).chain(65_520..65_545) {
            let text = format!("{}C4n4ry-Value{}", "x ".repeat(offset / 2), "y ".repeat(100_000));
            let out = through(&redactor, text.as_bytes(), 8192);
            assert!(!out.contains("C4n4ry") && out.contains(MASK), "offset {offset}");
        }
        let endless = format!("ghp_{}", "a1B2".repeat(125_000));
        assert!(through(&Redactor::default(), endless.as_bytes(), 8192).len() < 200_000);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000), step in 1usize..300) {
            let _ = through(&Redactor::default(), &bytes, step);
        }

        #[test]
        fn pieces_do_not_matter(text in "[ -~\n]{0,400}", step in 1usize..50) {
            let redactor = Redactor::new(["C4n4ry-Value"]);
            prop_assert_eq!(through(&redactor, text.as_bytes(), step), through(&redactor, text.as_bytes(), 10_000));
        }
    }
}
