//! The log of what went wrong inside a hook: whoever called it is not to be bothered with that.
//!
//! A few lines of text in the state folder, for a person. It must not grow without end: a full log
//! is moved aside, over the one before.

use crate::folder::suffixed;
use crate::{StateFolder, StoreError};
use backstop_core::SafeText;
use std::io::Write;

/// The log's name.
const LOG: &str = "hook.log";
/// How large it grows.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// How much of one line is kept.
const LINE_CHARS_MAX: usize = 1000;

impl StateFolder {
    /// Writes one line into the hooks' log, with the time. Secrets are masked.
    pub fn log_hook(&self, line: &str) -> Result<(), StoreError> {
        let path = self.root().join(LOG);
        if path.symlink_metadata().is_ok_and(|found| found.len() > LOG_BYTES_MAX) {
            // Whoever comes second finds it moved already.
            let _ = std::fs::rename(&path, suffixed(&path, ".1"));
        }
        let line = SafeText::new(self.redactor.redact(line).into_owned()).line(LINE_CHARS_MAX);
        let line = format!("{} {line}\n", (self.clock)());
        let mut file = self.files().append_private(&path).map_err(StoreError::file)?;
        file.write_all(line.as_bytes()).map_err(|error| StoreError::io(&path, &error))
    }
}
