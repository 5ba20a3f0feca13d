//! Lines in, answers out, in order, until the input ends.

use super::{LINE_BYTES_MAX, answer};
use backstop_core::Timestamp;
use serde_json::Value;
use std::io::{BufRead, Read};

/// The answers to the calls in `input`, one a line. Empty lines are passed over; a line that is too
/// long is answered with an error, and the next one is read.
pub struct Answers<R> {
    input: R,
    now: fn() -> Timestamp,
    line: Vec<u8>,
}

impl<R: BufRead> Answers<R> {
    /// The answers to the calls in `input`.
    pub fn new(input: R, now: fn() -> Timestamp) -> Self {
        Self { input, now, line: Vec::new() }
    }

    fn read(&mut self) -> std::io::Result<Option<Value>> {
        loop {
            self.line.clear();
            // One byte more than is read as a call: what is longer is answered with an error.
            let taken =
                (&mut self.input).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line)?;
            if taken == 0 {
                return Ok(None);
            }
            if taken > LINE_BYTES_MAX && !self.line.ends_with(b"\n") {
                self.input.skip_until(b'\n')?;
            }
            let text = String::from_utf8_lossy(&self.line);
            if !text.trim().is_empty() {
                return Ok(Some(answer(text.trim_end(), (self.now)())));
            }
        }
    }
}

impl<R: BufRead> Iterator for Answers<R> {
    type Item = std::io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_one_answer_and_a_long_one_spoils_no_other() {
        let call = "{\"fn\":\"explore.quorum\",\"input\":{}}\n";
        let input = format!("{call}\n{}\n{call}no JSON", "x".repeat(LINE_BYTES_MAX + 7));
        let answers = Answers::new(input.as_bytes(), || Timestamp::from_millis(0));
        let answers: Vec<Value> = answers.map(Result::unwrap).collect();
        assert_eq!(answers.len(), 4);
        assert_eq!(answers[0], answers[2]);
        assert!(answers[1]["error"].is_string() || answers[1]["error"].is_object(), "{}", answers[1]);
    }
}
