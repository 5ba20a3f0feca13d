//! What git answered: its output as the things it stands for, and its words where nothing else
//! tells.

use super::{GitError, Sha};
use backstop_core::SafeText;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What git says on a full disk.
const NO_ROOM: [&str; 3] = ["No space left on device", "Out of diskspace", "Disk quota exceeded"];
/// What it says on a read-only one.
const READ_ONLY: [&str; 1] = ["Read-only file system"];
/// What it says when it cannot write and does not say why.
const UNWRITTEN: [&str; 5] =
    ["unable to write", "couldn't write", "could not write", "unable to create", "write error"];
/// How much must fit on a disk that is not full.
const ROOM_BYTES: usize = 64 << 10;

/// Why something could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotWritten {
    /// The disk is full.
    NoRoom,
    /// The file system is read-only.
    ReadOnly,
}

/// Where git keeps its own files of a working tree.
fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let found = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    let text = std::fs::read(&found).ok()?;
    Some(path_of(text.strip_prefix(b"gitdir: ")?.trim_ascii_end()))
}

/// Writes a file and removes it again.
fn try_to_write(folder: &Path) -> Option<NotWritten> {
    let file = folder.join(format!("backstop-room-{}", std::process::id()));
    let written = std::fs::write(&file, [0; ROOM_BYTES]);
    let _ = std::fs::remove_file(&file);
    match written.err()?.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(NotWritten::NoRoom),
        ErrorKind::ReadOnlyFilesystem => Some(NotWritten::ReadOnly),
        _ => None,
    }
}

/// What git answered.
#[derive(Debug, Clone)]
pub(crate) struct GitOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) command: String,
    pub(crate) folder: PathBuf,
}

impl GitOutput {
    /// The error that this answer is.
    pub(crate) fn failed(&self) -> GitError {
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let (command, folder) = (self.command.clone(), self.folder.clone());
        let said = SafeText::from_bytes(said.trim_ascii());
        match self.not_written() {
            Some(NotWritten::NoRoom) => GitError::NoRoom { command, folder, said },
            Some(NotWritten::ReadOnly) => GitError::ReadOnly { command, folder, said },
            None => GitError::Failed { command, folder, code: self.code, said },
        }
    }

    /// Why git could not write, where that is it. Often it says only that it could not: then
    /// writing is tried where it keeps its own files.
    pub(crate) fn not_written(&self) -> Option<NotWritten> {
        let says = |words: &[&str]| words.iter().any(|words| self.mentions(words));
        if self.code == 0 {
            None
        } else if says(&NO_ROOM) {
            Some(NotWritten::NoRoom)
        } else if says(&READ_ONLY) {
            Some(NotWritten::ReadOnly)
        } else if says(&UNWRITTEN) {
            try_to_write(&git_dir_of(&self.folder)?)
        } else {
            None
        }
    }

    /// The error where the answer is not of the form that was expected.
    pub(crate) fn odd(&self) -> GitError {
        let said = &self.stdout[..self.stdout.len().min(400)];
        GitError::Odd {
            command: self.command.clone(),
            folder: self.folder.clone(),
            said: SafeText::from_bytes(said),
        }
    }

    /// The output without its last line end: a path may have others of its own.
    pub(crate) fn line(&self) -> &[u8] {
        self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout)
    }

    /// The output as text without its last line end.
    pub(crate) fn text(&self) -> Result<&str, GitError> {
        std::str::from_utf8(self.line()).map_err(|_| self.odd())
    }

    /// The output as a path.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(self.line())
    }

    /// The output as the name of an object.
    pub(crate) fn sha(&self) -> Result<Sha, GitError> {
        self.text()?.parse().map_err(|_| self.odd())
    }

    /// The parts of the output, each of which ends with a NUL.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|b| *b == 0).filter(|part| !part.is_empty())
    }

    /// Whether git said this.
    pub(crate) fn mentions(&self, words: &str) -> bool {
        has(&self.stderr, words)
    }
}

/// Whether bytes contain words.
pub(crate) fn has(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

/// The lock that git found held.
pub(crate) fn locked(answer: &GitOutput) -> Option<PathBuf> {
    if answer.code == 0 || !answer.mentions(".lock': File exists") {
        return None;
    }
    let end = answer.stderr.windows(6).position(|window| window == b".lock'")? + 5;
    let begin = answer.stderr[..end].iter().rposition(|b| *b == b'\'')? + 1;
    Some(path_of(&answer.stderr[begin..end]))
}

/// A path as git prints it.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_or_read_only_is_told_from_other_trouble() {
        let failed = |said: &str| {
            let (command, folder) = ("git x".to_owned(), PathBuf::from("/nowhere"));
            GitOutput { code: 128, stdout: Vec::new(), stderr: said.into(), command, folder }.failed()
        };
        for said in ["fatal: write error. Out of diskspace", "error: x: No space left on device"] {
            assert!(matches!(failed(said), GitError::NoRoom { .. }), "{said}");
        }
        let said = "fatal: Unable to create '/r/.git/x.lock': Read-only file system";
        assert!(matches!(failed(said), GitError::ReadOnly { .. }), "{said}");
        for said in ["error: unable to write file big", "fatal: bad object"] {
            assert!(matches!(failed(said), GitError::Failed { .. }), "{said}");
        }
    }

    #[test]
    fn the_lock_is_named() {
        let said = "fatal: Unable to create '/r/it's/.git/index.lock': File exists.\n\nAnother git process";
        let answer = |code, said: &str| GitOutput {
            code,
            stdout: Vec::new(),
            stderr: said.into(),
            command: String::new(),
            folder: PathBuf::new(),
        };
        assert!(locked(&answer(128, said)).unwrap().ends_with(".git/index.lock"));
        assert_eq!(locked(&answer(0, said)), None);
        assert_eq!(locked(&answer(128, "fatal: no")), None);
    }
}
