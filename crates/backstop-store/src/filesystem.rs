//! What kind of file system the state folder lies on, and whether it can be written.

use crate::StoreError;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How much is written to find out whether it can be.
const PROBE_BYTES: usize = 4096;

/// File systems on which locks cannot be trusted, by their magic number in `statfs`.
#[cfg(any(target_os = "linux", test))]
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE (sshfs and its kin)"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x7375_7245, "Coda"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786f_4256, "a VirtualBox share"),
];

#[cfg(any(target_os = "linux", test))]
fn note(magic: u32) -> Option<String> {
    let (_, name) = REMOTE.iter().find(|(known, _)| *known == magic)?;
    Some(format!(
        "the state folder lies on {name}, where SQLite's locks cannot be trusted: \
         choose a local folder with BACKSTOP_STATE_DIR"
    ))
}

/// Says so when the folder lies on a file system whose locks cannot be trusted.
#[cfg(target_os = "linux")]
pub(crate) fn filesystem_note(folder: &Path) -> Option<String> {
    let found = rustix::fs::statfs(folder).ok()?;
    // The field is signed on some machines and unsigned on others; the magic numbers have 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unnecessary_cast)]
    note(found.f_type as u32)
}

/// Only Linux says what it is by a number that can be known ahead of time.
#[cfg(not(target_os = "linux"))]
pub(crate) fn filesystem_note(_: &Path) -> Option<String> {
    None
}

/// Writes a small file and removes it again.
pub(crate) fn check_writable(folder: &Path) -> Result<(), StoreError> {
    let probe = folder.join(format!(".writable-{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&probe)
        .and_then(|mut file| file.write_all(&[0; PROBE_BYTES]));
    let removed = std::fs::remove_file(&probe);
    written.map_err(|error| StoreError::io(folder, &error))?;
    removed.map_err(|error| StoreError::io(folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_file_system_is_named() {
        assert!(note(0x6969).unwrap().contains("NFS"));
        assert_eq!(note(0xef53), None);
    }
}
