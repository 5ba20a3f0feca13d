//! Replaces a file in an open folder: written beside it under another name, then renamed.

use crate::Durability;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a file's name are in the name of the file beside it.
const NAME_BYTES_MAX: usize = 100;

/// Replaces the file `name`. Its permissions stay.
pub(crate) fn replace_in(
    folder: impl AsFd + Copy,
    name: &OsStr,
    content: &[u8],
    durability: Durability,
) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let name = Path::new(name);
    let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let mode = there.map(|found| Mode::from_raw_mode(found.st_mode));
    let nth = WRITES.fetch_add(1, Ordering::Relaxed);
    let short: String = name.to_string_lossy().chars().take(NAME_BYTES_MAX / 4).collect();
    let beside = format!(".{short}.{}-{nth}.new", std::process::id());
    let write = || -> std::io::Result<()> {
        // Fails if a file was put in its place meanwhile.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(folder, &beside, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(content)?;
        if let Some(mode) = mode {
            fchmod(&file, mode)?;
        }
        if durability == Durability::OnDisk {
            file.sync_all()?;
        }
        renameat(folder, &beside, folder, name)?;
        if durability == Durability::OnDisk {
            // The folder is open for its path alone.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            File::from(openat(folder, ".", flags, Mode::empty())?).sync_all()?;
        }
        Ok(())
    };
    write().inspect_err(|_| {
        let _ = unlinkat(folder, &beside, AtFlags::empty());
    })
}
