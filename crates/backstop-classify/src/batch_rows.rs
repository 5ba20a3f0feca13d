//! Many failures, one JSON object a line.

use crate::read_row;
use backstop_core::{Signal, Timestamp};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// The longest line that is read; of a longer one only that it is too long is known.
const LINE_BYTES_MAX: u64 = 8 << 20;
/// How much is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// One line of a batch.
#[derive(Debug)]
pub struct BatchRow {
    /// Its number, counted from 1.
    pub line: u64,
    /// Its id and what was seen; why it cannot be read otherwise.
    pub signal: Result<(Value, Signal), String>,
}

/// The lines of a batch, as they come in. Empty lines are passed over.
#[derive(Debug)]
pub struct BatchRows<R> {
    input: BufReader<R>,
    now: fn() -> Timestamp,
    line: u64,
    bytes: Vec<u8>,
}

impl<R: Read> BatchRows<R> {
    /// The lines of `input`.
    pub fn new(input: R, now: fn() -> Timestamp) -> Self {
        Self { input: BufReader::with_capacity(PIECE_BYTES, input), now, line: 0, bytes: Vec::new() }
    }

    fn read(&mut self) -> std::io::Result<Option<BatchRow>> {
        loop {
            self.line += 1;
            self.bytes.clear();
            let read = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes)?;
            if read == 0 {
                return Ok(None);
            }
            let line = self.line;
            if read as u64 == LINE_BYTES_MAX && !self.bytes.ends_with(b"\n") {
                skip_line(&mut self.input)?;
                let error = format!("the line has more than {LINE_BYTES_MAX} bytes");
                return Ok(Some(BatchRow { line, signal: Err(error) }));
            }
            if !self.bytes.trim_ascii().is_empty() {
                return Ok(Some(BatchRow { line, signal: read_row(&self.bytes, (self.now)()) }));
            }
        }
    }
}

impl<R: Read> Iterator for BatchRows<R> {
    type Item = std::io::Result<BatchRow>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|b| *b == b'\n');
        let used = end.map_or(buffer.len(), |n| n + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}
