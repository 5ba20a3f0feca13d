//! The one way to replace a file atomically, and the one way to append to a file that others read.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces a file atomically: readers see the old content or the new, never a part. It is on the
/// disk when this returns.
pub fn write_atomic(path: &Path, content: &[u8]) -> std::io::Result<()> {
    write(path, content, true)
}

/// Like [`write_atomic`], for files that can be generated again: does not wait for the disk.
pub fn write_view(path: &Path, content: &[u8]) -> std::io::Result<()> {
    write(path, content, false)
}

/// Appends whole lines to a file that others read meanwhile; creates it if it is missing.
pub fn append_file(path: &Path, lines: &[u8]) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(lines)
}

fn write(path: &Path, content: &[u8], durable: bool) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    // A symbolic link is followed, so that the file behind it is replaced; a device or a pipe
    // cannot be.
    let there = path.symlink_metadata().ok();
    let linked = there.as_ref().is_some_and(std::fs::Metadata::is_symlink);
    let path = &if linked { std::fs::canonicalize(path)? } else { path.to_owned() };
    let there = if linked { path.metadata().ok() } else { there };
    if there.as_ref().is_some_and(|meta| !meta.is_file()) {
        // Opening a pipe without a reader would block for ever.
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut there = OpenOptions::new().write(true).custom_flags(nonblock).open(path)?;
        return there.write_all(content);
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| std::io::Error::other("it has no name"))?.to_string_lossy();
    let nth = WRITES.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!(".{name}.{}-{nth}.new", std::process::id()));
    let write = || -> std::io::Result<()> {
        // Fails if a file was put in its place meanwhile.
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(content)?;
        if let Some(there) = &there {
            file.set_permissions(there.permissions())?;
        }
        if durable {
            file.sync_all()?;
        }
        std::fs::rename(&beside, path)?;
        if durable { File::open(folder)?.sync_all() } else { Ok(()) }
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}
