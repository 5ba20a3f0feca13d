//! The beginning and the end of a stream, within a fixed number of bytes.

use memchr::memchr_iter;

/// The beginning gets this fraction of the bytes: a quarter.
const HEAD_SHARE: usize = 4;

/// The beginning and the end of one stream. What lies between is counted, but not stored.
#[derive(Debug, Clone, Default)]
pub struct HeadTail {
    head: Vec<u8>,
    head_max: usize,
    /// A ring buffer: once it is full, the oldest byte is at `start`.
    tail: Vec<u8>,
    tail_max: usize,
    start: usize,
    bytes: u64,
    /// The number of line ends in the whole stream.
    lines: u64,
}

impl HeadTail {
    /// Stores at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        let head_max = Self::head_max(bytes_max);
        Self { head_max, tail_max: bytes_max - head_max, ..Self::default() }
    }

    /// How many of `bytes_max` bytes the beginning gets.
    pub(crate) fn head_max(bytes_max: usize) -> usize {
        bytes_max / HEAD_SHARE
    }

    /// The beginning and the end of a stream that is over.
    pub(crate) fn whole(
        head: Vec<u8>,
        head_max: usize,
        tail: Vec<u8>,
        tail_max: usize,
        bytes: u64,
        lines: u64,
    ) -> Self {
        Self { head, head_max, tail, tail_max, start: 0, bytes, lines }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += memchr_iter(b'\n', bytes).count() as u64;
        let (head, mut rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(head);
        if rest.len() >= self.tail_max {
            // More than the ring holds: only the end of `rest` stays.
            self.tail.clear();
            self.tail.extend_from_slice(&rest[rest.len() - self.tail_max..]);
            self.start = 0;
            return;
        }
        let room = self.tail_max - self.tail.len();
        let (fits, over) = rest.split_at(rest.len().min(room));
        self.tail.extend_from_slice(fits);
        rest = over;
        while !rest.is_empty() {
            let run = rest.len().min(self.tail.len() - self.start);
            self.tail[self.start..self.start + run].copy_from_slice(&rest[..run]);
            self.start = (self.start + run) % self.tail.len();
            rest = &rest[run..];
        }
    }

    /// The length of the whole stream, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the stream is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The beginning of the stream.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The end of the stream as two slices, in order. Where nothing was left out, it follows the
    /// beginning directly.
    pub fn tail(&self) -> (&[u8], &[u8]) {
        let (after, before) = self.tail.split_at(self.start);
        (before, after)
    }

    /// The number of bytes between the beginning and the end that were not stored.
    pub fn left_out_bytes(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// The number of line ends between the beginning and the end that were not stored.
    pub fn left_out_lines(&self) -> u64 {
        if self.left_out_bytes() == 0 {
            return 0;
        }
        let (before, after) = self.tail();
        let kept = [self.head(), before, after].map(|part| memchr_iter(b'\n', part).count() as u64);
        self.lines - kept.iter().sum::<u64>()
    }

    /// The last whole lines, at most `bytes_max` bytes of them.
    pub fn end(&self, bytes_max: usize) -> Vec<u8> {
        let (before, after) = self.tail();
        let whole = self.left_out_bytes() == 0;
        let mut all: Vec<u8> = Vec::with_capacity(bytes_max.min(self.tail.len() + self.head.len()));
        let parts = if whole { [self.head(), before, after] } else { [&[][..], before, after] };
        let total: usize = parts.iter().map(|p| p.len()).sum();
        let mut skip = total.saturating_sub(bytes_max);
        let cut = skip > 0 || !whole;
        for part in parts {
            let from = skip.min(part.len());
            skip -= from;
            all.extend_from_slice(&part[from..]);
        }
        if cut && let Some(at) = memchr::memchr(b'\n', &all) {
            all.drain(..=at);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_beginning_and_the_end_stay() {
        let mut kept = HeadTail::new(40);
        for n in 0..100 {
            kept.push(format!("line {n}\n").as_bytes());
        }
        assert_eq!(kept.head(), b"line 0\nlin");
        assert_eq!(kept.end(100), b"line 97\nline 98\nline 99\n");
        assert_eq!(kept.end(9), b"line 99\n");
        assert!(kept.left_out_bytes() > 0);
    }

    #[test]
    fn what_fits_is_whole() {
        let mut kept = HeadTail::new(40);
        kept.push(b"one\ntwo\n");
        assert_eq!(kept.left_out_bytes(), 0);
        assert_eq!(kept.end(100), b"one\ntwo\n");
        assert_eq!(kept.end(5), b"two\n");
    }

    proptest! {
        #[test]
        fn whatever_the_pieces_the_ends_are_right(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..40), cap in 4usize..200,
        ) {
            let whole: Vec<u8> = pieces.concat();
            let mut kept = HeadTail::new(cap);
            for piece in &pieces {
                kept.push(piece);
            }
            let (before, after) = kept.tail();
            let tail = [before, after].concat();
            prop_assert!(whole.starts_with(kept.head()));
            prop_assert!(whole.ends_with(&tail));
            prop_assert_eq!(kept.head().len() as u64 + kept.left_out_bytes() + tail.len() as u64, whole.len() as u64);
            let gap = &whole[kept.head().len()..whole.len() - tail.len()];
            prop_assert_eq!(kept.left_out_lines(), gap.iter().filter(|b| **b == b'\n').count() as u64);
            prop_assert!(kept.head().len() + tail.len() <= cap);
        }
    }
}
