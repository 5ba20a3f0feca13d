//! Collects the beginning and the end of a stream while it passes through, without copying it.
//!
//! Large reads are stored as the buffers that they were read into, and the oldest buffer is read
//! into again. Only small reads are copied. At the end it becomes a [`HeadTail`].

use crate::HeadTail;
use memchr::memchr_iter;
use std::collections::VecDeque;

/// The capacity of a buffer that small reads are copied into.
const SMALL_BLOCK_BYTES: usize = 64 << 10;

/// The beginning and the end of a stream that is not over yet.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    head: Vec<u8>,
    head_max: usize,
    tail_max: usize,
    /// What follows the beginning, at least `tail_max` bytes of it where there are so many.
    blocks: VecDeque<Vec<u8>>,
    /// The sum of the blocks' lengths.
    blocks_bytes: usize,
    bytes: u64,
    /// The number of line ends in the whole stream.
    lines: u64,
}

impl Keeper {
    /// Stores at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let head_max = HeadTail::head_max(bytes_max);
        Self { head_max, tail_max: bytes_max - head_max, ..Self::default() }
    }

    /// Stores what was read: `range` of `buffer`, in which there are `lines` line ends. Gives a
    /// buffer for the next read, which may be the same.
    pub(crate) fn push(&mut self, mut buffer: Vec<u8>, range: std::ops::Range<usize>, lines: u64) -> Vec<u8> {
        let bytes = &buffer[range.clone()];
        self.bytes += bytes.len() as u64;
        self.lines += lines;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(head);
        let is_large = rest.len() >= SMALL_BLOCK_BYTES && rest.len() >= buffer.capacity() / 2;
        if range.start > 0 || !head.is_empty() || !is_large {
            self.copy(rest);
            self.drop_oldest();
            return buffer;
        }
        let capacity = buffer.capacity();
        buffer.truncate(range.end);
        self.blocks_bytes += buffer.len();
        self.blocks.push_back(buffer);
        self.drop_oldest()
            .filter(|old| old.capacity() == capacity)
            .unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    fn copy(&mut self, mut bytes: &[u8]) {
        self.blocks_bytes += bytes.len();
        while !bytes.is_empty() {
            if self.blocks.back().is_none_or(|last| last.len() == last.capacity()) {
                self.blocks.push_back(Vec::with_capacity(SMALL_BLOCK_BYTES));
            }
            let Some(last) = self.blocks.back_mut() else { return };
            let (fits, over) = bytes.split_at(bytes.len().min(last.capacity() - last.len()));
            last.extend_from_slice(fits);
            bytes = over;
        }
    }

    /// Drops the blocks that are not part of the end any more. Gives one of them.
    fn drop_oldest(&mut self) -> Option<Vec<u8>> {
        let mut dropped = None;
        while let Some(first) = self.blocks.front()
            && self.blocks_bytes - first.len() >= self.tail_max
        {
            self.blocks_bytes -= first.len();
            dropped = self.blocks.pop_front();
        }
        dropped
    }

    /// The beginning and the end, now that the stream is over.
    pub(crate) fn finish(self) -> HeadTail {
        let mut skip = self.blocks_bytes.saturating_sub(self.tail_max);
        let mut tail = Vec::with_capacity(self.blocks_bytes - skip);
        for block in self.blocks {
            let from = skip.min(block.len());
            skip -= from;
            tail.extend_from_slice(&block[from..]);
        }
        HeadTail::whole(self.head, self.head_max, tail, self.tail_max, self.bytes, self.lines)
    }
}

/// The number of line ends.
pub(crate) fn lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_reads_it_keeps_the_same(
            reads in prop::collection::vec((0usize..300_000, any::<u8>()), 0..12), cap in 4usize..400_000,
        ) {
            let (mut keeper, mut plain) = (Keeper::new(cap), HeadTail::new(cap));
            let mut buffer = vec![0; 128 << 10];
            for (length, byte) in reads {
                let capacity = buffer.capacity();
                buffer.resize(capacity, 0);
                let length = length.min(capacity);
                for (at, to) in buffer[..length].iter_mut().enumerate() {
                    *to = if at % 97 == 0 { b'\n' } else { byte.wrapping_add((at % 251) as u8) };
                }
                plain.push(&buffer[..length]);
                let count = lines(&buffer[..length]);
                buffer = keeper.push(buffer, 0..length, count);
            }
            let kept = keeper.finish();
            prop_assert_eq!(kept.head(), plain.head());
            prop_assert_eq!(kept.bytes(), plain.bytes());
            let joined = |kept: &HeadTail| [kept.tail().0, kept.tail().1].concat();
            prop_assert!(joined(&kept) == joined(&plain));
            prop_assert_eq!(kept.left_out_lines(), plain.left_out_lines());
        }
    }
}
