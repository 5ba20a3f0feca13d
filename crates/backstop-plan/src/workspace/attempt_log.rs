//! The log of one attempt: everything that its processes write, with secrets masked, up to a size
//! limit.

use backstop_core::{RedactStream, Redactor};
use backstop_files::FileError;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The largest size of an attempt's log, in bytes.
const LOG_BYTES_MAX: u64 = 32 << 20;
/// Written where a log is cut at its limit.
const CUT: &str = "\n[the rest was left out: the log is full]\n";

/// The log of one attempt. Clones share it.
#[derive(Clone)]
pub(super) struct AttemptLog(Arc<Mutex<Inner>>);

struct Inner {
    file: Result<File, String>,
    stream: Option<RedactStream<Arc<Redactor>>>,
    written: u64,
}

impl AttemptLog {
    /// A log that was opened for appending. Where it could not be, each write says why, and what
    /// is written is dropped: a log must not hold work up.
    pub(super) fn new(opened: Result<File, FileError>, redactor: Arc<Redactor>) -> Self {
        let stream = Some(RedactStream::new(redactor));
        let file = opened.map_err(|error| error.to_string());
        Self(Arc::new(Mutex::new(Inner { file, stream, written: 0 })))
    }

    /// Why it could not be opened, if it could not.
    pub(super) fn trouble(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.as_ref().err().cloned()
    }

    /// Writes a line of Backstop's own.
    pub(super) fn write_line(&self, line: &str) {
        let mut to = self.clone();
        let _ = to.write_all(format!("{line}\n").as_bytes());
    }

    /// Writes what the redactor still holds back.
    pub(super) fn finish(&self) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = inner.stream.take() {
            let rest = stream.finish();
            inner.append(&rest);
        }
    }
}

impl Inner {
    fn append(&mut self, text: &str) {
        let Ok(file) = &mut self.file else { return };
        if self.written >= LOG_BYTES_MAX {
            return;
        }
        self.written += text.len() as u64;
        let _ = file.write_all(text.as_bytes());
        if self.written >= LOG_BYTES_MAX {
            let _ = file.write_all(CUT.as_bytes());
        }
    }
}

impl Write for AttemptLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is masked past the limit: an agent that prints a gigabyte is not slowed down.
        if inner.written < LOG_BYTES_MAX {
            let text = inner.stream.as_mut().map(|stream| stream.push(bytes)).unwrap_or_default();
            inner.append(&text);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The monotonic clock: how long a real process ran is measured, not given.
#[expect(clippy::disallowed_methods)]
pub(super) fn now() -> Instant {
    Instant::now()
}
