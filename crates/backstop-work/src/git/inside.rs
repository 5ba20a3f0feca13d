//! Whether a process works in a folder: then what it holds there is not stale.
//!
//! On Linux every process that we may look at is looked at. Elsewhere the caller's word is taken
//! that nobody does.

use std::path::Path;

/// How many processes are looked at.
const PROCESSES_MAX: usize = 65_536;

/// Whether a process has its working folder in this one.
pub(crate) fn someone_inside(folder: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.take(PROCESSES_MAX).flatten().any(|process| {
        let numbered = process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        numbered && std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    })
}
