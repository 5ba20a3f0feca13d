//! Files that a person named: on the command line, or in settings of their own. Their links are
//! followed; a pipe is never waited for.

use crate::folder::{check_regular, read_whole};
use crate::replace::replace_in;
use crate::walk::open_root;
use crate::{Durability, FileError};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads a regular file of at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    read_whole(open(path)?, path, bytes_max)
}

/// Opens a regular file for reading.
pub fn open(path: &Path) -> Result<File, FileError> {
    let io = |error| FileError::io(path, error);
    let opened = OpenOptions::new().read(true).custom_flags(no_waiting()).open(path).map_err(io)?;
    check_regular(&opened, path)?;
    Ok(opened)
}

/// Replaces a file atomically. The file behind a link is replaced, and the link stays; a device or
/// a pipe is written to.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> Result<(), FileError> {
    let io = |error| FileError::io(path, error);
    let linked = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let real = if linked { path.canonicalize().map_err(io)? } else { path.to_owned() };
    if real.metadata().is_ok_and(|found| !found.is_file()) {
        let mut there = OpenOptions::new().write(true).custom_flags(no_waiting()).open(&real).map_err(io)?;
        return there.write_all(content).map_err(io);
    }
    let folder = real.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = real.file_name().ok_or_else(|| FileError::Outside { path: path.to_owned() })?;
    replace_in(&open_root(folder)?, name, content, durability).map_err(io)
}

/// Appends whole lines to a file that others read meanwhile; creates it if it is missing.
pub fn append_lines(path: &Path, lines: &[u8]) -> Result<(), FileError> {
    let open = OpenOptions::new().create(true).append(true).custom_flags(no_waiting()).open(path);
    open.and_then(|mut file| file.write_all(lines)).map_err(|error| FileError::io(path, error))
}

/// Opening a pipe without a reader would block for ever.
fn no_waiting() -> i32 {
    OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed()
}
