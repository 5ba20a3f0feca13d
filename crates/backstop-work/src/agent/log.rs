//! Everything that a process writes, on its way into the log, with its end kept.
//!
//! Two streams write into one log. A log that cannot be written is given up, and the process goes on: it is not ended because
//! our disk is full.

use backstop_core::Redactor;
use backstop_exec::Kept;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of the end is looked at for secrets.
const SCANNED_BYTES: usize = 64 << 10;
/// How much of it is given back.
const TAIL_BYTES: usize = 8 << 10;

/// The log of one attempt, written by both of its streams.
#[derive(Clone)]
pub(super) struct SharedLog(Arc<Mutex<State>>);

struct State {
    log: Box<dyn Write + Send>,
    kept: Kept,
    trouble: Option<String>,
}

impl SharedLog {
    pub(super) fn new(log: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(State { log, kept: Kept::new(2 * SCANNED_BYTES), trouble: None })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What kept the log from being written, where something did.
    pub(super) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// The end of what was written, with secrets masked.
    pub(super) fn tail(&self, redactor: &Redactor) -> Vec<u8> {
        let state = self.state();
        let (before, after) = state.kept.tail();
        let mut end = if state.kept.left_out_bytes() == 0 { state.kept.head().to_vec() } else { Vec::new() };
        end.extend_from_slice(before);
        end.extend_from_slice(after);
        let mut stream = redactor.stream();
        let mut text = stream.push(&end);
        text.push_str(&stream.finish());
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES));
        text.split_off(from).into_bytes()
    }
}

impl Write for SharedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.state();
        state.kept.push(bytes);
        if state.trouble.is_none()
            && let Err(error) = backstop_exec::write_patiently(&mut state.log, bytes)
        {
            state.trouble = Some(error.to_string());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _ = self.state().log.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_is_full_ends_nothing_and_is_told() {
        let mut log = SharedLog::new(Box::new(Full));
        for _ in 0..3 {
            log.write_all(b"x").unwrap();
        }
        assert!(log.trouble().is_some());
        assert_eq!(log.tail(&Redactor::default()), b"xxx");
    }

    #[test]
    fn the_tail_is_bounded_and_masked_even_where_there_is_one_line() {
        let mut log = SharedLog::new(Box::new(std::io::sink()));
        for n in 0..100_000 {
            write!(log, "{n} C4n4ry-Value ").unwrap();
        }
        let tail = String::from_utf8(log.tail(&Redactor::new(["C4n4ry-Value"]))).unwrap();
        assert!(tail.len() <= TAIL_BYTES && tail.contains("99998") && !tail.contains("C4n4ry"), "{tail}");
    }
}
