//! What differs: between two commits, and between the user's files and what is committed.
//!
//! Renames are not guessed: a file that moved was deleted in one place and added in another.

use super::answer::{GitOutput, path_of};
use super::call::Call;
use super::{GitError, Repo, Sha};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Changed {
    /// The path, below the root. It need not be UTF-8.
    pub path: OsString,
    /// What happened to it.
    pub how: How,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It is new.
    Added,
    /// Its content, its mode or its type changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// What a tree has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) oid: Sha,
}

impl Entry {
    pub(crate) fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.mode == 0o120_000
    }

    /// A repository inside the repository: only the name of its commit is in the tree.
    pub(crate) fn is_link(&self) -> bool {
        self.mode == 0o160_000
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.mode == 0o100_755
    }
}

/// A path that changed, with what it was and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: OsString,
    pub(crate) from: Option<Entry>,
    pub(crate) to: Option<Entry>,
}

impl Step {
    /// Whether a nested repository was at a path and another commit of it is now.
    pub(crate) fn is_of_links(&self) -> bool {
        [&self.from, &self.to].iter().all(|entry| entry.as_ref().is_some_and(Entry::is_link))
    }
}

impl Repo {
    /// What changed from one commit or tree to another, in the order of the paths.
    pub fn changed_paths(&self, from: &Sha, to: &Sha) -> Result<Vec<Changed>, GitError> {
        let how = |step: &Step| match (&step.from, &step.to) {
            (None, _) => How::Added,
            (_, None) => How::Deleted,
            _ => How::Modified,
        };
        let steps = self.steps(from, to)?;
        Ok(steps.into_iter().map(|step| Changed { how: how(&step), path: step.path }).collect())
    }

    /// Tracked files that the user has changed, staged or not, submodules too. Untracked files do
    /// not count, and neither do the paths in `except`, which may be absolute or below the root.
    pub fn dirty(&self, except: &[&Path]) -> Result<Vec<PathBuf>, GitError> {
        let except: Vec<PathBuf> = except.iter().map(|path| self.below_root(path)).collect();
        let call = self.call().args(["status", "--porcelain=v1", "-z", "--no-renames"]);
        let call = call.args(["--untracked-files=no", "--ignore-submodules=untracked"]).read_only();
        let mut dirty = status_paths(&call.done()?);
        dirty.retain(|path| !except.contains(path));
        Ok(dirty)
    }

    /// A path as git knows it. One that is elsewhere stays as it is, and is no path of git's.
    pub(crate) fn below_root(&self, path: &Path) -> PathBuf {
        let plain = |path: &Path| path.strip_prefix(self.root()).map(Path::to_owned).ok();
        if path.is_relative() {
            return path.components().collect();
        }
        let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        plain(path).or_else(|| plain(&real()?)).unwrap_or_else(|| path.to_owned())
    }

    pub(crate) fn steps(&self, from: &Sha, to: &Sha) -> Result<Vec<Step>, GitError> {
        let mut call = self.which_steps(from, to);
        if call.known().is_none() {
            // Of commits whose trees are known, it is the question about those.
            let [from, to] = [from, to].map(|sha| self.known_tree(sha).unwrap_or_else(|| sha.clone()));
            call = self.which_steps(&from, &to);
        }
        self.raw_steps(call)
    }

    fn which_steps(&self, from: &Sha, to: &Sha) -> Call<'_> {
        let call = self.call().args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]).arg(from).arg(to);
        call.arg("--").lasting()
    }

    /// Runs a git that prints changes in their raw form, and reads it.
    pub(crate) fn raw_steps(&self, call: Call<'_>) -> Result<Vec<Step>, GitError> {
        let answer = call.done()?;
        let mut parts = answer.parts();
        let mut steps = Vec::new();
        while let Some(head) = parts.next() {
            let path = parts.next().ok_or_else(|| answer.odd())?;
            steps.push(step(head, path).ok_or_else(|| answer.odd())?);
        }
        Ok(steps)
    }
}

/// Reads `:100644 100755 <oid> <oid> M` and a path.
fn step(head: &[u8], path: &[u8]) -> Option<Step> {
    let mut words = std::str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ');
    let mut mode = || u32::from_str_radix(words.next()?, 8).ok();
    let (from_mode, to_mode) = (mode()?, mode()?);
    let mut entry = |mode| {
        let oid = words.next()?.parse().ok()?;
        Some((mode != 0).then_some(Entry { mode, oid }))
    };
    let (from, to) = (entry(from_mode)?, entry(to_mode)?);
    Some(Step { path: OsStr::from_bytes(path).to_owned(), from, to })
}

/// The paths of `git status --porcelain=v1 -z --no-renames`.
pub(crate) fn status_paths(answer: &GitOutput) -> Vec<PathBuf> {
    let path = |part: &[u8]| part.get(3..).map(path_of);
    answer.parts().filter_map(path).collect()
}
