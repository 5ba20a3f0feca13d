//! What git answered: its output as the things it stands for, and its words where nothing else
//! tells.

use super::{GitError, Sha};
use backstop_core::SafeText;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
        GitError::Failed {
            command: self.command.clone(),
            folder: self.folder.clone(),
            code: self.code,
            said: SafeText::from_bytes(said.trim_ascii()),
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
