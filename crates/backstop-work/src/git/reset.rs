//! Putting a slot at another commit for the next attempt. Ignored files stay: that is what keeps it
//! warm.
//!
//! It must not throw away what is not saved. What git cannot save, a repository inside the slot, is
//! put aside.

use super::repo::head;
use super::slot::remove_if_there;
use super::{GitError, Sha, Slot, Underway, inside};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A slot that was put at another commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reset {
    /// Where repositories are now that were inside the slot and could not be saved.
    pub put_aside: Vec<PathBuf>,
}

impl Slot {
    /// Puts the slot at a commit. Nobody may be at work in it.
    ///
    /// `saved` is the commit that has what is here now; with `None` there must be nothing but the
    /// commit that is checked out. Otherwise it is an error and nothing is changed.
    pub fn reset_to(&self, at: &Sha, saved: Option<&Sha>) -> Result<Reset, GitError> {
        self.repo.tree_of(at)?;
        self.check_saved(saved)?;
        self.unlock()?;
        self.detach()?;
        self.call().args(["reset", "--hard", "-q"]).arg(at).done()?;
        let put_aside = self.put_aside()?;
        self.clean()?;
        self.set_mark(at)?;
        self.place_submodules(at)?;
        Ok(Reset { put_aside })
    }

    /// Puts a slot at a commit in which nobody has worked since it was made or since
    /// `Repo::commit_in` committed in it. The caller knows that; files are not looked at where it
    /// is there already.
    pub fn move_untouched(&self, at: &Sha) -> Result<(), GitError> {
        if self.at()? == *at {
            return Ok(());
        }
        self.call().args(["reset", "--hard", "-q"]).arg(at).done()?;
        self.clean()?;
        self.set_mark(at)?;
        self.place_submodules(at)
    }

    /// Puts the files of a saved commit into the slot, uncommitted, on top of the commit that it is
    /// at. To be called right after [`Slot::reset_to`].
    pub fn restore(&self, saved: &Sha) -> Result<(), GitError> {
        self.call().args(["read-tree", "-u", "--reset"]).arg(saved).done()?;
        self.call().args(["reset", "-q"]).arg(&self.at()?).done().map(|_| ())
    }

    fn check_saved(&self, saved: Option<&Sha>) -> Result<(), GitError> {
        self.check_head(saved)?;
        let head = self.head()?.map_or_else(|| self.at(), Ok)?;
        self.check_files(saved.unwrap_or(&head))
    }

    /// Sees to it that the commit that is checked out does not become unreachable.
    pub(crate) fn check_head(&self, saved: Option<&Sha>) -> Result<(), GitError> {
        let Some(head) = self.head()? else { return Ok(()) };
        let in_saved = match saved {
            Some(saved) => self.repo.contains(saved, &head)?,
            None => false,
        };
        if in_saved || head == self.at()? || self.repo.is_kept(&head)? {
            return Ok(());
        }
        Err(GitError::HeadNotSaved { path: self.path.clone(), head })
    }

    /// Sees to it that nothing is here that is not in a commit or tree.
    fn check_files(&self, expected: &Sha) -> Result<(), GitError> {
        let state = self.state(&self.at()?)?;
        // A nested repository is put aside later; a file that cannot be read would be lost.
        let lost = |path: &PathBuf| !self.path.join(path).join(".git").exists();
        let mut files: Vec<PathBuf> = state.left.into_iter().filter(lost).collect();
        let differs = self.repo.changed_paths(expected, &state.tree)?;
        files.extend(
            differs.into_iter().map(|c| PathBuf::from(c.path)).filter(|path| !self.is_excluded(path)),
        );
        if files.is_empty() { Ok(()) } else { Err(GitError::NotSaved { path: self.path.clone(), files }) }
    }

    /// Removes locks that somebody left who is gone.
    pub(crate) fn unlock(&self) -> Result<(), GitError> {
        let locks: Vec<PathBuf> = ["index.lock", "HEAD.lock"].map(|name| self.git_dir.join(name)).into();
        if !locks.iter().any(|lock| lock.exists()) {
            return Ok(());
        }
        if inside::someone_inside(&self.path) {
            return Err(GitError::InUse { path: self.path.clone() });
        }
        locks.iter().try_for_each(|lock| remove_if_there(lock))
    }

    /// Leaves the branch that is checked out, without moving it, and whatever was begun on it.
    pub(crate) fn detach(&self) -> Result<(), GitError> {
        let now = head(&self.repo, &self.path, &self.git_dir)?;
        let quit = now.underway.filter(|underway| *underway != Underway::Bisect);
        if let Some(underway) = quit {
            self.call().args([underway.command(), "--quit"]).done()?;
        }
        let is_detached = now.branch.is_none() && now.sha.is_some();
        let sha = now.sha.map_or_else(|| self.at(), Ok)?;
        if !is_detached {
            self.call().args(["update-ref", "--no-deref", "HEAD"]).arg(&sha).done()?;
        }
        if now.underway == Some(Underway::Bisect) {
            self.call().args(["bisect", "reset"]).arg(&sha).done()?;
        }
        Ok(())
    }

    /// Removes what is neither tracked nor ignored nor excluded.
    pub(crate) fn clean(&self) -> Result<(), GitError> {
        let call = self.call().args(["clean", "-ffdq", "--"]);
        call.args(self.all_but_excluded()).done().map(|_| ())
    }

    /// Moves repositories that somebody made inside the slot beside it: their content is saved
    /// nowhere.
    fn put_aside(&self) -> Result<Vec<PathBuf>, GitError> {
        let answer = self.call().args(["ls-files", "-o", "--exclude-standard", "-z"]).read_only().done()?;
        let mut moved = Vec::new();
        // A repository is listed as a folder; other folders are listed by their files.
        for path in answer.parts().filter_map(|path| path.strip_suffix(b"/")) {
            let path = Path::new(OsStr::from_bytes(path));
            if !self.is_excluded(path) {
                moved.push(self.move_beside(path)?);
            }
        }
        Ok(moved)
    }

    fn move_beside(&self, path: &Path) -> Result<PathBuf, GitError> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".aside");
        let beside = PathBuf::from(beside);
        std::fs::create_dir_all(&beside).map_err(|error| GitError::io(&beside, &error))?;
        let name = path.file_name().unwrap_or(OsStr::new("repository"));
        let mut target = beside.join(name);
        for n in 2_u32.. {
            if target.symlink_metadata().is_err() {
                break;
            }
            let mut numbered = OsString::from(name);
            numbered.push(format!(".{n}"));
            target = beside.join(numbered);
        }
        let moved = std::fs::rename(self.path.join(path), &target);
        moved.map_err(|error| GitError::io(&target, &error))?;
        Ok(target)
    }
}
