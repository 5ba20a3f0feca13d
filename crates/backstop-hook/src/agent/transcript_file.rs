//! The end of an agent's transcript, where an event says less than the agent knows.

use super::{BrokenTurn, TRANSCRIPT_BYTES_MAX, broken_turn, call_exit};
use backstop_core::Timestamp;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// How often a transcript is looked at for something that may not be written yet, and how far
/// apart.
const LOOKS_MAX: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How much of its end is looked at first.
const LAST_BYTES: usize = 256 << 10;
/// A turn that broke longer ago than this is not news.
const NEWS_FOR: Duration = Duration::from_secs(60);

/// The exit code of a call, where the transcript tells of it.
pub(super) fn exit(file: &Path, call: &str) -> Option<i64> {
    for look in 0..LOOKS_MAX {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        // It is most likely the last thing that was written.
        let bytes = if look + 1 < LOOKS_MAX { LAST_BYTES } else { TRANSCRIPT_BYTES_MAX };
        if let Some(exit) = call_exit(&end_of(file, bytes)?, call) {
            return Some(exit);
        }
    }
    None
}

/// The turn that has just broken off, where the session ended by that.
pub(super) fn broken(file: &Path, now: Timestamp) -> Option<BrokenTurn> {
    broken_turn(&end_of(file, TRANSCRIPT_BYTES_MAX)?).filter(|turn| now.since(turn.at) <= NEWS_FOR)
}

/// So many bytes of the end of a file; nothing where it is none, or cannot be read.
fn end_of(file: &Path, bytes: usize) -> Option<Vec<u8>> {
    let length = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?.len();
    let mut opened = std::fs::File::open(file).ok()?;
    opened.seek(SeekFrom::Start(length.saturating_sub(bytes as u64))).ok()?;
    let mut end = Vec::new();
    opened.take(bytes as u64).read_to_end(&mut end).ok()?;
    Some(end)
}
