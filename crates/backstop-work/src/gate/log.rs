//! Where gates' output goes: a log that several write to, and the end that is kept.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// How much of the end of the output is kept.
pub(super) const TAIL_BYTES: usize = 8 << 10;

/// Where everything that gates write goes. A log that cannot be written holds nothing up.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Mutex<dyn Write + Send>>>);

impl Log {
    /// To this writer. A cap is the caller's business.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(writer))))
    }

    /// To nowhere.
    pub fn none() -> Self {
        Self(None)
    }

    pub(super) fn put(&self, bytes: &[u8]) {
        if let Some(writer) = &self.0 {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            // To end a gate because a log is full would be a false finding.
            let _ = writer.write_all(bytes);
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Log(..)" } else { "Log(none)" })
    }
}

/// A stream on its way to the log. Both streams of a command share one end.
#[derive(Clone)]
pub(super) struct Tee {
    log: Log,
    end: Arc<Mutex<Vec<u8>>>,
}

impl Tee {
    pub(super) fn new(log: Log) -> Self {
        Self { log, end: Arc::default() }
    }

    /// The last bytes, from the beginning of a line on.
    pub(super) fn tail(&self) -> Vec<u8> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.len() <= TAIL_BYTES {
            return end.clone();
        }
        let last = &end[end.len() - TAIL_BYTES..];
        let from = last.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
        // One line without an end is kept as it is cut.
        if from == last.len() { last.to_vec() } else { last[from..].to_vec() }
    }
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        {
            let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
            let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES + 1)..];
            end.extend_from_slice(new);
            if end.len() > 4 * TAIL_BYTES {
                let from = end.len() - TAIL_BYTES - 1;
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
        let mut tee = Tee::new(Log::to(Full));
        let mut other = tee.clone();
        for n in 0..20_000 {
            writeln!(if n % 2 == 0 { &mut tee } else { &mut other }, "line {n}").unwrap();
        }
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
}
