//! What a person is shown, and what is known of the folder where nothing is isolated.

use super::changes::status_paths;
use super::state::copy_as_old;
use super::{GitError, How, Repo, Sha};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The index that a snapshot of the user's files is made with.
const SNAPSHOT_INDEX: &str = "backstop-snapshot-index";

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
    /// Every path that differs from the last commit, untracked ones included, ignored ones not. The
    /// paths in `except`, and what is below them, do not count; they may be absolute or below the
    /// root.
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

    /// What changed from one commit or tree to another in these paths, in all where there are none,
    /// as a patch for programs: a file that moved was deleted in one place and added in another,
    /// and no setting of the user's changes how it looks.
    pub fn patch(&self, from: &Sha, to: &Sha, paths: &[&OsStr]) -> Result<Vec<u8>, GitError> {
        let call = self.call().config("core.quotePath=false").literal();
        let call = call.args(["diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv"]);
        let call = call.args(["--no-renames", "--src-prefix=a/", "--dst-prefix=b/"]).arg(from).arg(to);
        Ok(call.arg("--").args(paths).read_only().done()?.stdout)
    }

    /// All files as a tree, untracked ones included, ignored ones not. The paths in `except` are as
    /// they were committed. What the user has staged stays as it is.
    pub fn snapshot(&self, except: &[&Path]) -> Result<Sha, GitError> {
        let index = self.git_dir().join(SNAPSHOT_INDEX);
        let result = self.snapshot_in(&index, except);
        let _ = std::fs::remove_file(&index);
        result
    }

    fn snapshot_in(&self, index: &Path, except: &[&Path]) -> Result<Sha, GitError> {
        let _ = std::fs::remove_file(index);
        if copy_as_old(&self.git_dir().join("index"), index).is_err() {
            // Without a commit there is nothing to begin from.
            self.call().index(index).args(["read-tree", "HEAD"]).answer()?;
        }
        let mut names = vec![OsString::from(".")];
        for path in except {
            let mut name = OsString::from(":(top,literal,exclude)");
            name.push(self.below_root(path));
            names.push(name);
        }
        // It says no where a file cannot be read, or an excluded one is ignored, and stages the
        // rest.
        self.call().index(index).args(["add", "-A", "--ignore-errors", "--"]).args(names).answer()?;
        self.call().index(index).arg("write-tree").done()?.sha()
    }
}
