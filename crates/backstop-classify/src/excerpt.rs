//! The beginning and the end of a stream, for those who read lines and not matches: the grammar and
//! the learned back-off. What is kept is bounded, however long the stream is.

use crate::clean::{visible, without_timestamp};

/// How much of the beginning is kept.
const HEAD_BYTES: usize = 1 << 10;
/// How much of the end is kept.
const TAIL_BYTES: usize = 8 << 10;
/// How much of a line is read.
const LINE_BYTES_MAX: usize = 600;

/// The beginning and the end of one stream.
#[derive(Debug, Default)]
pub(crate) struct Excerpt {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// How many bytes were added.
    len: u64,
}

impl Excerpt {
    /// Adds the next part of the stream.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.len += part.len() as u64;
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(part.len());
        self.head.extend_from_slice(&part[..room]);
        let part = &part[room..];
        if part.len() >= TAIL_BYTES {
            self.tail.clear();
            self.tail.extend_from_slice(&part[part.len() - TAIL_BYTES..]);
            return;
        }
        self.tail.extend_from_slice(part);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// Whether there is next to nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.len < 2
    }

    /// The lines, without those that were cut in the middle, as they were seen.
    pub(crate) fn lines(&self) -> Vec<String> {
        let is_whole = self.len as usize == self.head.len() + self.tail.len();
        let mut lines = Vec::new();
        let mut take = |text: &[u8], cut_first: bool, cut_last: bool| {
            let parts: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            let skip = usize::from(cut_first && parts.len() > 1);
            let keep = parts.len() - usize::from(cut_last && parts.len() > 1);
            for part in &parts[skip..keep.max(skip)] {
                let part = part.strip_suffix(b"\r").unwrap_or(part);
                let line = without_timestamp(visible(part, part.len()));
                let line = &line[..line.len().min(LINE_BYTES_MAX)];
                if !line.trim_ascii().is_empty() {
                    lines.push(String::from_utf8_lossy(line).into_owned());
                }
            }
        };
        if is_whole {
            take(&[&self.head[..], &self.tail].concat(), false, false);
        } else {
            take(&self.head, false, true);
            take(&self.tail, true, false);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_kept_whole_however_it_is_cut() {
        let text: String = (0..200).map(|n| format!("line {n}\r\n")).collect();
        for step in [1, 7, 1000, 100_000] {
            let mut excerpt = Excerpt::default();
            text.as_bytes().chunks(step).for_each(|part| excerpt.add(part));
            let lines = excerpt.lines();
            assert_eq!((lines.len(), &*lines[0], &*lines[199]), (200, "line 0", "line 199"), "step {step}");
        }
    }

    #[test]
    fn of_a_long_stream_both_ends_are_kept_and_no_half_line() {
        let text: String = (0..100_000).map(|n| format!("line {n:05}\n")).collect();
        let mut excerpt = Excerpt::default();
        text.as_bytes().chunks(65_536).for_each(|part| excerpt.add(part));
        let lines = excerpt.lines();
        assert_eq!((&*lines[0], &**lines.last().unwrap()), ("line 00000", "line 99999"));
        assert!(lines.len() < 1000 && lines.iter().all(|line| line.len() == 10), "{}", lines.len());
        assert!(Excerpt::default().is_empty());
    }
}
