//! The user's repository: where it is, and what is checked out.
//!
//! [`Repo::find`] looks from a folder upwards, as git does. Nothing here changes anything.

use super::answer::path_of;
use super::call::{Call, Settings};
use super::loose::{self, has_ref_tables};
use super::{GitError, Interrupt, Sha, filters, version};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub struct Repo {
    pub(crate) settings: Arc<Settings>,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit. None on a branch that has no commit yet.
    pub sha: Option<Sha>,
    /// The branch, as `refs/heads/main`. None where a commit is checked out without a branch.
    pub branch: Option<String>,
    /// What the user is in the middle of.
    pub underway: Option<Underway>,
}

/// Something that the user has begun and not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Underway {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Am,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Underway {
    /// The git command that began it.
    pub fn command(self) -> &'static str {
        match self {
            Underway::Merge => "merge",
            Underway::Rebase => "rebase",
            Underway::Am => "am",
            Underway::CherryPick => "cherry-pick",
            Underway::Revert => "revert",
            Underway::Bisect => "bisect",
        }
    }
}

/// Refuses a repository in which git would wait for ever: these files are opened by every command
/// that looks at the working tree. Links are not followed by git.
fn readable(root: &Path) -> Result<(), GitError> {
    for name in [".gitignore", ".gitattributes", ".gitmodules"] {
        let file = root.join(name);
        let Ok(found) = file.symlink_metadata() else { continue };
        let found = found.file_type();
        let kind = match () {
            () if found.is_fifo() => "a named pipe",
            () if found.is_char_device() || found.is_block_device() => "a device",
            () if found.is_socket() => "a socket",
            () => continue,
        };
        return Err(GitError::NoFile { file, kind });
    }
    Ok(())
}

impl Repo {
    /// The repository that a folder is in. None outside of git.
    pub fn find(folder: &Path) -> Result<Option<Repo>, GitError> {
        Self::find_with(folder, Settings::default())
    }

    /// The same, with another git program, environment or patience.
    pub fn find_with(folder: &Path, mut settings: Settings) -> Result<Option<Repo>, GitError> {
        version::check(&settings, folder)?;
        let call = || settings.call(folder).arg("rev-parse").read_only();
        let kinds = call().args(["--is-bare-repository", "--is-inside-git-dir", "--is-inside-work-tree"]);
        let answer = kinds.answer()?;
        if answer.code != 0 {
            let outside = answer.mentions("not a git repository (or any");
            return if outside { Ok(None) } else { Err(answer.failed()) };
        }
        let kinds: Vec<&str> = answer.text()?.lines().collect();
        let folder = folder.to_owned();
        match kinds.as_slice() {
            ["true", _, "false"] => return Err(GitError::Bare { folder }),
            [_, "true", _] => return Err(GitError::InsideGitDir { folder }),
            [_, _, "true"] => {}
            _ => return Err(answer.odd()),
        }
        let absolute = "--path-format=absolute";
        let wanted = ["--show-toplevel", "--git-dir", "--git-common-dir"];
        let all = call().arg(absolute).args(wanted).done()?;
        let lines: Vec<&[u8]> = all.line().split(|byte| *byte == b'\n').collect();
        let [root, git_dir, common_dir] = match lines.as_slice() {
            [root, git_dir, common_dir] => [root, git_dir, common_dir].map(|line| path_of(line)),
            // A line end is part of one of them.
            _ => {
                let one = |wanted: &str| Ok(call().args([absolute, wanted]).done()?.path());
                [one(wanted[0])?, one(wanted[1])?, one(wanted[2])?]
            }
        };
        readable(&root)?;
        if settings.missing_filters.is_none() {
            settings.missing_filters = Some(filters::missing(&settings, &root)?);
        }
        Ok(Some(Repo { root, git_dir, common_dir, settings: Arc::new(settings) }))
    }

    /// The top of the working tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Git's own folder for this working tree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Git's own folder that all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The filters of the user's settings whose program is missing: files stay as they are in the
    /// repository.
    pub fn missing_filters(&self) -> &[String] {
        self.settings.missing_filters.as_deref().unwrap_or_default()
    }

    /// Ends the git processes of this repository that run.
    pub fn interrupt(&self) -> Interrupt {
        self.settings.interrupt.clone()
    }

    /// What is checked out.
    pub fn head(&self) -> Result<Head, GitError> {
        head(self, &self.root, &self.git_dir)
    }

    /// Whether one commit is another's ancestor, or the same.
    pub fn contains(&self, descendant: &Sha, ancestor: &Sha) -> Result<bool, GitError> {
        if descendant == ancestor {
            return Ok(true);
        }
        let answer = self.is_ancestor(ancestor, descendant).answer()?;
        match answer.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(answer.failed()),
        }
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Sha) -> Result<Sha, GitError> {
        self.which_tree(commit).done()?.sha()
    }

    /// Remembers what is known of a commit that was just made, so that git need not be asked: its
    /// tree, and that its parents come before it.
    pub(crate) fn remember(&self, commit: &Sha, tree: &Sha, parents: &[&Sha]) {
        self.which_tree(commit).knows(0, &format!("{tree}\n"));
        for parent in parents {
            self.is_ancestor(parent, commit).knows(0, "");
            self.is_ancestor(commit, parent).knows(1, "");
        }
    }

    /// The tree of a commit, where git need not be asked.
    pub(crate) fn known_tree(&self, commit: &Sha) -> Option<Sha> {
        self.which_tree(commit).known()?.sha().ok()
    }

    fn which_tree(&self, commit: &Sha) -> Call<'_> {
        self.call().args(["rev-parse", "--verify", "-q"]).arg(format!("{commit}^{{tree}}")).lasting()
    }

    fn is_ancestor(&self, ancestor: &Sha, descendant: &Sha) -> Call<'_> {
        self.call().args(["merge-base", "--is-ancestor"]).arg(ancestor).arg(descendant).lasting()
    }

    /// A git in the user's working tree.
    pub(crate) fn call(&self) -> Call<'_> {
        self.settings.call(&self.root)
    }
}

/// The commit that is checked out in a working tree of a repository.
pub(crate) fn head_sha(repo: &Repo, folder: &Path, git_dir: &Path) -> Result<Option<Sha>, GitError> {
    if let Some(sha) = loose::head(git_dir, &repo.common_dir) {
        return Ok(Some(sha));
    }
    let call = repo.settings.call(folder).args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]);
    let answer = call.read_only().answer()?;
    if answer.code == 0 { answer.sha().map(Some) } else { Ok(None) }
}

/// What is checked out in a working tree of a repository.
pub(crate) fn head(repo: &Repo, folder: &Path, git_dir: &Path) -> Result<Head, GitError> {
    let branch = branch(&repo.settings, folder, git_dir)?;
    let sha = head_sha(repo, folder, git_dir)?;
    Ok(Head { sha, branch, underway: underway(&repo.settings, folder, git_dir)? })
}

/// The branch that is checked out, whether it has a commit or not.
pub(crate) fn branch(settings: &Settings, folder: &Path, git_dir: &Path) -> Result<Option<String>, GitError> {
    if let Some(name) = loose::branch(git_dir) {
        return Ok(Some(name));
    }
    if loose::commit(git_dir, "HEAD").is_some() {
        return Ok(None);
    }
    let symbolic = settings.call(folder).args(["symbolic-ref", "-q", "HEAD"]).read_only().answer()?;
    match symbolic.code {
        0 => Ok(Some(symbolic.text()?.to_owned())),
        1 => Ok(None),
        _ => Err(symbolic.failed()),
    }
}

fn underway(settings: &Settings, folder: &Path, git_dir: &Path) -> Result<Option<Underway>, GitError> {
    let there = |name: &str| git_dir.join(name).exists();
    if there("rebase-apply/applying") {
        return Ok(Some(Underway::Am));
    }
    if there("rebase-merge") || there("rebase-apply") {
        return Ok(Some(Underway::Rebase));
    }
    if there("MERGE_HEAD") {
        return Ok(Some(Underway::Merge));
    }
    let in_tables = has_ref_tables(git_dir);
    for (name, what) in [("CHERRY_PICK_HEAD", Underway::CherryPick), ("REVERT_HEAD", Underway::Revert)] {
        let call = || settings.call(folder).args(["rev-parse", "--verify", "-q", name]).read_only();
        if there(name) || (in_tables && call().answer()?.code == 0) {
            return Ok(Some(what));
        }
    }
    Ok(there("BISECT_LOG").then_some(Underway::Bisect))
}
