//! What a person is shown, and what is known of the folder where nothing is isolated.

use super::changes::status_paths;
use super::{GitError, How, Repo, Sha};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

impl How {
    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            How::Added => "added",
            How::Modified => "modified",
            How::Deleted => "deleted",
        }
    }
}

impl Repo {
    /// Every path that differs from the last commit, untracked ones included, ignored ones not. The paths in `except`, and
    /// what is below them, do not count; they may be absolute or below the root.
    pub fn changed_now(&self, except: &[&Path]) -> Result<Vec<OsString>, GitError> {
        let except: Vec<PathBuf> = except.iter().map(|path| self.below_root(path)).collect();
        let call = self.call().args(["status", "--porcelain=v1", "-z", "--no-renames"]);
        let call = call.args(["--untracked-files=all", "--ignore-submodules=untracked"]).read_only();
        let mut paths = status_paths(&call.done()?);
        paths.retain(|path| !except.iter().any(|except| path.starts_with(except)));
        Ok(paths.into_iter().map(PathBuf::into_os_string).collect())
    }

    /// Whether the last commit has just this message.
    pub fn last_message_is(&self, message: &str) -> Result<bool, GitError> {
        let answer = self.call().args(["log", "-1", "--format=%B"]).read_only().answer()?;
        Ok(answer.code == 0 && String::from_utf8_lossy(&answer.stdout).trim() == message.trim())
    }

    /// What changed from one commit to another, as a patch for people.
    pub fn diff(&self, from: &Sha, to: &Sha) -> Result<Vec<u8>, GitError> {
        let call =
            self.call().args(["diff", "--no-color", "--no-ext-diff", "--stat", "-p"]).arg(from).arg(to);
        Ok(call.arg("--").read_only().done()?.stdout)
    }
}
