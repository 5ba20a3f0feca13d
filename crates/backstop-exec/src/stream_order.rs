//! The order in which the pieces of a command's two output streams were read.
//!
//! Only lengths are stored, the bytes are in each stream's [`HeadTail`]: remembering the order
//! costs no copy, and a bounded number of entries however long the command runs.

use crate::HeadTail;
use std::collections::VecDeque;

/// How many changes from one stream to the other are stored from the beginning of the output.
const HEAD_ENTRIES_MAX: usize = 16 << 10;
/// How many changes are stored from its end.
const TAIL_ENTRIES_MAX: usize = 48 << 10;

/// The order of the pieces of up to two streams, numbered 0 and 1.
#[derive(Debug, Clone, Default)]
pub struct StreamOrder {
    head: Vec<(usize, u64)>,
    /// Bytes of each stream between the beginning and the end, whose order was not stored.
    between: [u64; 2],
    tail: VecDeque<(usize, u64)>,
}

/// A part of the output, in the order in which it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart<'a> {
    /// The number of the stream: 0 is standard output or everything, 1 is standard error.
    pub stream: usize,
    /// How many bytes of the stream before these were not stored.
    pub left_out_bytes: u64,
    /// The bytes, in up to three slices.
    pub bytes: Vec<&'a [u8]>,
}

impl StreamOrder {
    /// The next `bytes` bytes that were read are of this stream.
    pub(crate) fn push(&mut self, stream: usize, bytes: usize) {
        let bytes = bytes as u64;
        let in_tail = !self.tail.is_empty() || self.head.len() == HEAD_ENTRIES_MAX;
        let last = if self.tail.is_empty() { self.head.last_mut() } else { self.tail.back_mut() };
        match last {
            Some((of, length)) if *of == stream => *length += bytes,
            _ if !in_tail => self.head.push((stream, bytes)),
            _ => {
                if self.tail.len() == TAIL_ENTRIES_MAX
                    && let Some((oldest, length)) = self.tail.pop_front()
                {
                    self.between[oldest.min(1)] += length;
                }
                self.tail.push_back((stream, bytes));
            }
        }
    }

    /// The stored bytes of both streams, in order.
    pub(crate) fn parts<'a>(&self, streams: [&'a HeadTail; 2]) -> Vec<OutputPart<'a>> {
        let between = [(0, self.between[0]), (1, self.between[1])];
        let entries = self.head.iter().chain(between.iter()).chain(self.tail.iter());
        let mut parts: Vec<OutputPart<'a>> = Vec::new();
        let mut read = [0_u64; 2];
        let mut left_out = [0_u64; 2];
        for (stream, length) in entries.filter(|(_, length)| *length > 0) {
            let stream = (*stream).min(1);
            let kept = streams[stream];
            let from = read[stream];
            read[stream] += length;
            let (head, tail, missing) = slices(kept, from, read[stream]);
            left_out[stream] += missing;
            // What is missing lies between the beginning of a stream and its end.
            let gap = if tail.is_empty() { 0 } else { std::mem::take(&mut left_out[stream]) };
            for (left_out_bytes, bytes) in [(0, head), (gap, tail)] {
                match parts.last_mut() {
                    _ if bytes.is_empty() => {}
                    Some(last) if last.stream == stream && left_out_bytes == 0 => last.bytes.extend(bytes),
                    _ => parts.push(OutputPart { stream, left_out_bytes, bytes }),
                }
            }
        }
        parts
    }
}

/// What is stored of the bytes `from..to` of a stream: in its beginning, in its end, and how many
/// of them are in neither.
fn slices(kept: &HeadTail, from: u64, to: u64) -> (Vec<&[u8]>, Vec<&[u8]>, u64) {
    let (before, after) = kept.tail();
    let tail_from = kept.head().len() as u64 + kept.left_out_bytes();
    let part = |slice: &[u8], start: u64| {
        let at = |position: u64| {
            usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX).min(slice.len())
        };
        at(from)..at(to)
    };
    let head = &kept.head()[part(kept.head(), 0)];
    let before_part = &before[part(before, tail_from)];
    let after_part = &after[part(after, tail_from + before.len() as u64)];
    let stored = head.len() + before_part.len() + after_part.len();
    let mut tail = vec![before_part, after_part];
    tail.retain(|slice| !slice.is_empty());
    let head = if head.is_empty() { Vec::new() } else { vec![head] };
    (head, tail, (to - from).saturating_sub(stored as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(part: &OutputPart<'_>) -> String {
        String::from_utf8_lossy(&part.bytes.concat()).into_owned()
    }

    #[test]
    fn pieces_come_back_in_the_order_in_which_they_were_read() {
        let (mut order, mut out, mut err) = (StreamOrder::default(), HeadTail::new(100), HeadTail::new(100));
        for (stream, piece) in [(0, "a\n"), (0, "b\n"), (1, "c\n"), (0, "d\n")] {
            [&mut out, &mut err][stream].push(piece.as_bytes());
            order.push(stream, piece.len());
        }
        let parts: Vec<(usize, String)> =
            order.parts([&out, &err]).iter().map(|part| (part.stream, text(part))).collect();
        assert_eq!(parts, [(0, "a\nb\n".into()), (1, "c\n".into()), (0, "d\n".into())]);
    }

    #[test]
    fn what_was_not_kept_is_counted_where_it_is_missing() {
        let (mut order, mut out, mut err) = (StreamOrder::default(), HeadTail::new(16), HeadTail::new(16));
        for n in 0..50 {
            out.push(format!("{n:02}\n").as_bytes());
            order.push(0, 3);
            if n == 0 || n == 49 {
                err.push(b"!\n");
                order.push(1, 2);
            }
        }
        let parts = order.parts([&out, &err]);
        let shown: Vec<(usize, u64, String)> =
            parts.iter().map(|part| (part.stream, part.left_out_bytes, text(part))).collect();
        assert_eq!(
            shown,
            [
                (0, 0, "00\n".into()),
                (1, 0, "!\n".into()),
                (0, 0, "0".into()),
                (0, 134, "46\n47\n48\n49\n".into()),
                (1, 0, "!\n".into())
            ]
        );
    }

    proptest! {
        #[test]
        fn all_that_is_kept_comes_back_once(pieces in prop::collection::vec((0usize..2, 0usize..40), 0..200), max in 4usize..200) {
            let mut order = StreamOrder::default();
            let mut streams = [HeadTail::new(max), HeadTail::new(max)];
            for (n, (stream, length)) in pieces.iter().enumerate() {
                let bytes = vec![b'a' + u8::try_from(n % 26).unwrap(); *length];
                streams[*stream].push(&bytes);
                order.push(*stream, *length);
            }
            let parts = order.parts([&streams[0], &streams[1]]);
            for (number, kept) in streams.iter().enumerate() {
                let got: Vec<u8> = parts.iter().filter(|p| p.stream == number).flat_map(|p| p.bytes.concat()).collect();
                let (before, after) = kept.tail();
                prop_assert_eq!(got, [kept.head(), before, after].concat());
                let left_out: u64 = parts.iter().filter(|p| p.stream == number).map(|p| p.left_out_bytes).sum();
                prop_assert_eq!(left_out, kept.left_out_bytes());
            }
        }
    }
}
