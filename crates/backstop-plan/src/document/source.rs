//! The checked text of a plan, and its lines.
//!
//! It must not know what a line means. Line ends may be LF, CRLF or CR, also mixed; a byte order
//! mark is skipped.

use super::PLAN_BYTES_MAX;
use super::error::{NotText, PlanError, PlanErrorKind};
use std::ops::Range;

/// A byte order mark.
const MARK: &str = "\u{feff}";

/// The text of a plan, with the byte positions of its lines. Lines are counted from 0.
pub(crate) struct Source<'t> {
    text: &'t str,
    /// Where each line begins. The text's limit keeps them within 32 bits.
    starts: Vec<u32>,
}

impl<'t> Source<'t> {
    /// Checks that the bytes are UTF-8 text within the size limit.
    pub(crate) fn new(bytes: &'t [u8]) -> Result<Self, PlanError> {
        if bytes.len() > PLAN_BYTES_MAX {
            let kind = PlanErrorKind::TooLarge { bytes: bytes.len(), limit: PLAN_BYTES_MAX };
            return Err(PlanError::at(1, 1, kind));
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(PlanError::at(1, 1, PlanErrorKind::NotText(NotText::Utf16)));
        }
        let (text, wrong) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, text.find('\0').map(|at| (at, NotText::Nul))),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let wrong = match good.iter().position(|byte| *byte == 0) {
                    Some(at) => (at, NotText::Nul),
                    None => (good.len(), NotText::Utf8),
                };
                (std::str::from_utf8(good).unwrap_or_default(), Some(wrong))
            }
        };
        let source = Self { text, starts: starts(text) };
        match wrong {
            None => Ok(source),
            Some((at, what)) => {
                let (line, column) = source.position(at);
                Err(PlanError::at(line, column, PlanErrorKind::NotText(what)))
            }
        }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// How many lines there are: at least one.
    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Where a line begins.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.starts.get(line).map_or(self.text.len(), |start| *start as usize)
    }

    /// The byte range of a line, without its line end.
    pub(crate) fn range(&self, line: usize) -> Range<usize> {
        let (start, mut end) = (self.start(line), self.start(line + 1));
        let bytes = self.text.as_bytes();
        if line + 1 < self.starts.len() {
            end -= 1;
            if bytes[end] == b'\n' && end > start && bytes[end - 1] == b'\r' {
                end -= 1;
            }
        }
        start..end
    }

    /// The text of a line, without its line end.
    pub(crate) fn line(&self, line: usize) -> &'t str {
        &self.text[self.range(line)]
    }

    /// The line of a byte, counted from 0.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= at).max(1) - 1
    }

    /// Line and column of a byte, both counted from 1, the column in characters.
    pub(crate) fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start as usize <= at).max(1);
        let start = self.start(line - 1).min(at);
        (line, self.text[start..at].chars().count() + 1)
    }
}

fn starts(text: &str) -> Vec<u32> {
    let bytes = text.as_bytes();
    let first = if text.starts_with(MARK) { MARK.len() } else { 0 };
    let mut starts = vec![first as u32];
    for (at, byte) in bytes.iter().enumerate() {
        let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if ends {
            starts.push((at + 1) as u32);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_every_way() {
        let source = Source::new("\u{feff}a\r\nb\rc\n\nd".as_bytes()).unwrap();
        let lines: Vec<&str> = (0..source.count()).map(|line| source.line(line)).collect();
        assert_eq!(lines, ["a", "b", "c", "", "d"]);
        assert_eq!(source.position(3), (1, 1));
        assert_eq!(source.position(4), (1, 2));
        assert_eq!(source.position(usize::MAX), (5, 2));
        assert_eq!(source.position(0), (1, 1));
        let empty = Source::new(b"").unwrap();
        assert_eq!((empty.count(), empty.line(0), empty.line(7)), (1, "", ""));
        let ended = Source::new(b"a\n").unwrap();
        assert_eq!((ended.count(), ended.line(0), ended.line(1)), (2, "a", ""));
    }

    #[test]
    fn what_is_no_text_is_refused_where_it_stops_being_one() {
        for (bytes, what, line, column) in [
            (&b"a\nb\xffc"[..], NotText::Utf8, 2, 2),
            (b"a\n\xc3\xa9\0c", NotText::Nul, 2, 2),
            (b"a\0\n\xff", NotText::Nul, 1, 2),
            (b"\xff\xfea\0", NotText::Utf16, 1, 1),
        ] {
            let error = Source::new(bytes).err().unwrap();
            assert_eq!(error.kind, PlanErrorKind::NotText(what));
            assert_eq!((error.line, error.column), (line, column));
        }
        let large = vec![b' '; PLAN_BYTES_MAX + 1];
        assert!(matches!(Source::new(&large).err().unwrap().kind, PlanErrorKind::TooLarge { .. }));
        assert!(Source::new(&large[1..]).is_ok());
    }
}
