//! Cuts a stream of any length into blocks that a rule can look around in.
//!
//! A block is `context | body | ahead`: hits are looked for in the body alone, and a rule may read
//! the lines above and below it. Blocks are cut at line ends. A line without an end is cut where
//! the block is full, with an overlap in which no literal can be lost.

use crate::clean;

/// How much a block holds before it is cut.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// How much of the text before a block stays readable.
pub(crate) const CONTEXT_BYTES: usize = 32 << 10;
/// How much is kept back behind a block. It is readable from the block, and the last block is never
/// smaller: the end of a log is what matters most.
const AHEAD_BYTES: usize = 256 << 10;
/// How much text without a line end is left unclean, in case an escape sequence goes on.
const UNCLEAN_BYTES: usize = 8 << 10;
/// How much of a line without an end is looked at twice.
const OVERLAP_BYTES: usize = 256;

/// One block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The text: context, body, ahead.
    pub(crate) text: Vec<u8>,
    /// Where the body begins.
    pub(crate) from: usize,
    /// Where the body ends.
    pub(crate) to: usize,
    /// Whether this is the last block of its stream.
    pub(crate) last: bool,
}

/// Cuts one stream.
#[derive(Debug, Default)]
pub(crate) struct Chunker {
    buffer: Vec<u8>,
    /// Where the body of the next block begins.
    from: usize,
    /// Up to here the buffer is clean.
    clean: usize,
    started: bool,
}

impl Chunker {
    /// How much more is wanted before a block is full.
    pub(crate) fn wanted(&self) -> usize {
        (self.from + BLOCK_BYTES + AHEAD_BYTES).saturating_sub(self.buffer.len()).max(4096)
    }

    /// The buffer, for reading into directly. Call `added` afterwards.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Cleans what was added, up to the last line end: a sequence may be cut by the end of what was
    /// read.
    pub(crate) fn added(&mut self) {
        if !self.started && self.buffer.len() >= 3 {
            self.started = true;
            for mark in [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"] {
                if self.buffer.starts_with(mark) {
                    self.buffer.drain(..mark.len());
                    break;
                }
            }
        }
        let raw = &self.buffer[self.clean..];
        let complete = match memchr::memrchr(b'\n', raw) {
            Some(n) => n + 1,
            None if raw.len() > UNCLEAN_BYTES => raw.len(),
            None => return,
        };
        self.clean_up_to(self.clean + complete);
    }

    fn clean_up_to(&mut self, end: usize) {
        let tail = self.buffer.split_off(end);
        clean::clean(&mut self.buffer, self.clean);
        self.clean = self.buffer.len();
        self.buffer.extend_from_slice(&tail);
    }

    /// The next full block, if there is one. `spare` is a buffer to reuse.
    pub(crate) fn next(&mut self, spare: Vec<u8>) -> Result<Block, Vec<u8>> {
        if self.clean - self.from.min(self.clean) < BLOCK_BYTES + AHEAD_BYTES {
            return Err(spare);
        }
        let limit = self.clean - AHEAD_BYTES;
        let (to, next_from) = match memchr::memrchr(b'\n', &self.buffer[self.from..limit]) {
            Some(n) => (self.from + n + 1, self.from + n + 1),
            None => (limit, limit - OVERLAP_BYTES),
        };
        Ok(self.cut(to, next_from, spare))
    }

    /// What is left, as the last block.
    pub(crate) fn finish(&mut self) -> Block {
        let end = self.buffer.len();
        self.clean_up_to(end);
        let to = self.buffer.len();
        Block { text: std::mem::take(&mut self.buffer), from: self.from, to, last: true }
    }

    fn cut(&mut self, to: usize, next_from: usize, mut spare: Vec<u8>) -> Block {
        let context = next_from.saturating_sub(CONTEXT_BYTES);
        spare.clear();
        spare.extend_from_slice(&self.buffer[context..]);
        let text = std::mem::replace(&mut self.buffer, spare);
        let block = Block { text, from: self.from, to, last: false };
        self.from = next_from - context;
        self.clean -= context;
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(stream: &[u8], step: usize) -> Vec<u8> {
        let mut chunker = Chunker::default();
        let mut seen = Vec::new();
        for part in stream.chunks(step) {
            chunker.buffer().extend_from_slice(part);
            chunker.added();
            while let Ok(block) = chunker.next(Vec::new()) {
                seen.extend_from_slice(&block.text[block.from..block.to]);
            }
        }
        let block = chunker.finish();
        seen.extend_from_slice(&block.text[block.from..block.to]);
        seen
    }

    #[test]
    fn lines_come_through_once_each() {
        let stream: Vec<u8> =
            (0..200_000).flat_map(|n| format!("\x1b[3{}mline {n}\x1b[0m\n", n % 8).into_bytes()).collect();
        let want: Vec<u8> = (0..200_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        for step in [1000, 65_536, stream.len()] {
            assert!(bodies(&stream, step) == want, "step {step}");
        }
    }

    #[test]
    fn a_line_without_end_is_cut_with_an_overlap() {
        let stream = vec![b'x'; 3_000_000];
        let seen = bodies(&stream, 100_000).len();
        assert!(seen >= stream.len() && seen < stream.len() + 10 * OVERLAP_BYTES, "{seen}");
    }

    #[test]
    fn byte_order_marks_go() {
        assert_eq!(bodies(b"\xff\xfeF\0a\0", 100), b"Fa");
        assert_eq!(bodies(b"\xef\xbb\xbfx", 100), b"x");
        assert_eq!(bodies(b"", 1), b"");
    }
}
