//! Streams that are read line by line on their way to where they go.

use std::io::Write;

/// Passes everything on to `to`, and every whole line to `on_line`, cut at `line_bytes_max`.
pub(super) struct LineStream<W, F> {
    to: W,
    line_bytes_max: usize,
    on_line: F,
    /// The line that has not ended yet.
    open: Vec<u8>,
}

impl<W, F: FnMut(&[u8])> LineStream<W, F> {
    pub(super) fn new(to: W, line_bytes_max: usize, on_line: F) -> Self {
        Self { to, line_bytes_max, on_line, open: Vec::new() }
    }

    fn look(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = self.line_bytes_max.saturating_sub(self.open.len());
            self.open.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                (self.on_line)(&std::mem::take(&mut self.open));
            }
        }
    }
}

impl<W: Write, F: FnMut(&[u8])> Write for LineStream<W, F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.look(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// How much of a line that has not ended is held back to see what it is.
const HELD_BYTES_MAX: usize = 100;

/// Which lines are dropped.
pub(super) struct Dropped {
    /// How they begin. Lines that begin otherwise are never held back.
    pub(super) begin: &'static [u8],
    /// Whether a line that begins so is dropped, by its first hundred bytes.
    pub(super) is_dropped: fn(&[u8]) -> bool,
}

/// Passes on all lines but some.
pub(super) struct LineFilter<W> {
    to: W,
    dropped: Dropped,
    /// The beginning of a line of which it is not known yet.
    held: Vec<u8>,
    /// What became of the line that has not ended yet.
    current: Option<Passed>,
}

#[derive(Clone, Copy, PartialEq)]
enum Passed {
    On,
    Dropped,
}

impl<W> LineFilter<W> {
    pub(super) fn new(to: W, dropped: Dropped) -> Self {
        Self { to, dropped, held: Vec::new(), current: None }
    }

    /// Whether the line that has begun is dropped; nothing where that cannot be said yet.
    fn verdict(&self, ends: bool) -> Option<Passed> {
        let begin = &self.held[..self.held.len().min(self.dropped.begin.len())];
        // A question waits for its answer without ending its line.
        if !self.dropped.begin.starts_with(begin) {
            return Some(Passed::On);
        }
        let is_known = ends || self.held.len() >= HELD_BYTES_MAX;
        let is_dropped = || self.held.len() > begin.len() && (self.dropped.is_dropped)(&self.held);
        is_known.then(|| if is_dropped() { Passed::Dropped } else { Passed::On })
    }
}

impl<W: Write> Write for LineFilter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            match self.current {
                Some(Passed::On) => self.to.write_all(piece)?,
                Some(Passed::Dropped) => {}
                None => {
                    self.held.extend_from_slice(piece);
                    self.current = self.verdict(ends);
                    let held = self.current.map(|_| std::mem::take(&mut self.held));
                    if let Some(held) = held.filter(|_| self.current == Some(Passed::On)) {
                        self.to.write_all(&held)?;
                    }
                }
            }
            if ends {
                self.current = None;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_dropped_by_their_beginning_however_they_come() {
        let text =
            "what is it? \ntimestamp=1 level=INFO message=loop\n\ntimestamp=1 level=ERROR no\nYes or no: ";
        let want = "what is it? \n\ntimestamp=1 level=ERROR no\nYes or no: ";
        let is_dropped = |line: &[u8]| String::from_utf8_lossy(line).contains(" level=INFO ");
        for size in [1, 2, 7, 500] {
            let mut out = Vec::new();
            let mut filter = LineFilter::new(&mut out, Dropped { begin: b"timestamp=", is_dropped });
            text.as_bytes().chunks(size).for_each(|piece| filter.write_all(piece).unwrap());
            assert_eq!(String::from_utf8_lossy(&out), want, "{size}");
        }
    }
}
