//! The one way to write a file whole.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file so that at every moment the old or the new one is there, never a part.
pub(crate) fn write_atomic(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // Through a link, the file behind it is meant; a device or a pipe cannot be replaced.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        // A pipe that nobody reads would hold us for ever.
        let mut there = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        return there.write_all(content);
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| std::io::Error::other("it has no name"))?.to_string_lossy();
    let beside = folder.join(format!(".{name}.{}.new", std::process::id()));
    let write = || -> std::io::Result<()> {
        // Nobody may have put something in its place: then it is theirs.
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}
