//! Where everything that processes write goes: a log that several streams share, and the end that
//! is kept.
//!
//! A log that cannot be written is given up and the process goes on: to end it because our disk is
//! full would be a false finding. A cap and masking are the caller's business.

use backstop_core::Redactor;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of the end of the output is given back.
pub(crate) const TAIL_BYTES: usize = 8 << 10;
/// How much of it is kept, so that a secret at the edge is seen whole.
const KEPT_BYTES: usize = 64 << 10;

/// A log. Clones share it.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Mutex<Shared>>>);

struct Shared {
    to: Box<dyn Write + Send>,
    trouble: Option<String>,
}

impl Log {
    /// To this writer.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(Shared { to: Box::new(writer), trouble: None }))))
    }

    /// To nowhere.
    pub fn none() -> Self {
        Self(None)
    }

    fn shared(&self) -> Option<MutexGuard<'_, Shared>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn put(&self, bytes: &[u8]) {
        if let Some(mut shared) = self.shared()
            && shared.trouble.is_none()
            && let Err(error) = backstop_exec::write_patiently(&mut shared.to, bytes)
        {
            shared.trouble = Some(error.to_string());
        }
    }

    /// What kept it from being written, where something did.
    pub fn trouble(&self) -> Option<String> {
        self.shared()?.trouble.clone()
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Log(..)" } else { "Log(none)" })
    }
}

/// A stream on its way to the log. Both streams of a process share one end.
#[derive(Clone)]
pub(crate) struct Tee {
    log: Log,
    end: Arc<Mutex<Vec<u8>>>,
}

impl Tee {
    pub(crate) fn new(log: Log) -> Self {
        Self { log, end: Arc::default() }
    }

    fn end(&self) -> MutexGuard<'_, Vec<u8>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last bytes, from the beginning of a line on.
    pub(crate) fn tail(&self) -> Vec<u8> {
        let end = self.end();
        if end.len() <= TAIL_BYTES {
            return end.clone();
        }
        let last = &end[end.len() - TAIL_BYTES..];
        let from = last.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
        // One line without an end is kept as it is cut.
        if from == last.len() { last.to_vec() } else { last[from..].to_vec() }
    }

    /// The last bytes with secrets masked.
    pub(crate) fn masked_tail(&self, redactor: &Redactor) -> Vec<u8> {
        let mut stream = redactor.stream();
        let mut text = stream.push(&self.end());
        text.push_str(&stream.finish());
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES));
        text.split_off(from).into_bytes()
    }
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        {
            let mut end = self.end();
            end.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
            if end.len() > 4 * KEPT_BYTES {
                let from = end.len() - KEPT_BYTES;
                end.drain(..from);
            }
        }
        self.log.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_log_holds_nothing_up_and_the_end_is_kept() {
        let log = Log::to(Full);
        let mut tee = Tee::new(log.clone());
        let mut other = tee.clone();
        for n in 0..20_000 {
            writeln!(if n % 2 == 0 { &mut tee } else { &mut other }, "line {n}").unwrap();
        }
        assert!(log.trouble().is_some());
        let tail = String::from_utf8(tee.tail()).unwrap();
        assert!(tail.len() <= TAIL_BYTES && tail.len() > TAIL_BYTES - 20, "{}", tail.len());
        assert!(tail.starts_with("line ") && tail.ends_with("line 19998\nline 19999\n"), "{tail}");
    }

    #[test]
    fn one_endless_line_is_cut_and_kept() {
        let mut tee = Tee::new(Log::none());
        tee.write_all(&vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(tee.tail().len(), TAIL_BYTES);
    }

    #[test]
    fn the_tail_is_bounded_and_masked_even_where_there_is_one_line() {
        let mut tee = Tee::new(Log::none());
        for n in 0..100_000 {
            write!(tee, "{n} C4n4ry-Value ").unwrap();
        }
        let tail = String::from_utf8(tee.masked_tail(&Redactor::new(["C4n4ry-Value"]))).unwrap();
        assert!(tail.len() <= TAIL_BYTES && tail.contains("99998") && !tail.contains("C4n4ry"), "{tail}");
    }
}
