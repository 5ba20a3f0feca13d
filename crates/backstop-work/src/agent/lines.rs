//! A stream that is read line by line on its way to where it goes.

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
