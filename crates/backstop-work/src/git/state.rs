//! What is in a slot now, as a tree.
//!
//! Everything is staged into an index of our own: what whoever worked here has done with theirs is only read, so that a
//! half merge or a lock left behind is no obstacle. Paths that the slot excludes are as they were at the base. A file
//! whose bytes did not change does not change, even where staging it would turn its line ends.

use super::answer::path_of;
use super::call::{ARGUMENT_BYTES_MAX, Call, nul_list};
use super::changes::{Entry, Step};
use super::slot::remove_if_there;
use super::{GitError, Sha, Slot};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Our own index.
const INDEX: &str = "backstop-index";

/// What is in a slot.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tree: Sha,
    /// What could not be read into the tree, and nested repositories with changes inside.
    pub(crate) left: Vec<PathBuf>,
}

/// Our own index of a slot, removed when it is not needed any more.
struct Index<'a> {
    slot: &'a Slot,
    file: PathBuf,
}

impl Drop for Index<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Slot {
    /// The tree of what is here now, without saving anything: what a gate has verified.
    pub fn tree_hash(&self) -> Result<Sha, GitError> {
        Ok(self.state(&self.at()?)?.tree)
    }

    pub(crate) fn state(&self, base: &Sha) -> Result<State, GitError> {
        let index = Index::begin(self, base)?;
        let mut left = index.stage()?;
        left.extend(index.changed_inside()?);
        index.restore_excluded(base)?;
        let tree = index.tree()?;
        let unturned = index.restore_unchanged(&self.repo.steps(base, &tree)?)?;
        let tree = if unturned { index.tree()? } else { tree };
        Ok(State { tree, left })
    }

    /// The names of everything but what is excluded.
    pub(crate) fn all_but_excluded(&self) -> Vec<OsString> {
        let mut names = vec![OsString::from(".")];
        for path in &self.exclude {
            let mut name = OsString::from(":(top,literal,exclude)");
            name.push(path);
            names.push(name);
        }
        names
    }

    pub(crate) fn is_excluded(&self, path: &Path) -> bool {
        self.exclude.iter().any(|excluded| path.starts_with(excluded))
    }
}

impl<'a> Index<'a> {
    /// From the index that is there, else from the commit that is checked out, else from the base.
    fn begin(slot: &'a Slot, base: &Sha) -> Result<Self, GitError> {
        let index = Index { slot, file: slot.git_dir.join(INDEX) };
        remove_if_there(&index.file)?;
        remove_if_there(&slot.git_dir.join(format!("{INDEX}.lock")))?;
        if copy_as_old(&slot.git_dir.join("index"), &index.file).is_ok() && index.unhide().is_ok() {
            return Ok(index);
        }
        remove_if_there(&index.file)?;
        let head = slot.head()?.unwrap_or_else(|| base.clone());
        index.call().arg("read-tree").arg(head).done()?;
        Ok(index)
    }

    fn call(&self) -> Call<'_> {
        self.slot.call().index(&self.file)
    }

    /// Takes the flags away that make git look past a changed file.
    fn unhide(&self) -> Result<(), GitError> {
        let sparse = self.call().args(["config", "--type=bool", "--get", "core.sparseCheckout"]).answer()?;
        let sparse = sparse.line() == b"true";
        let listed = self.call().args(["ls-files", "-v", "-z"]).done()?;
        let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
        for part in listed.parts() {
            let Some((tag, [b' ', path @ ..])) = part.split_first() else { continue };
            if tag.is_ascii_lowercase() {
                assumed.push(OsStr::from_bytes(path));
            }
            if tag.eq_ignore_ascii_case(&b'S') && !sparse {
                skipped.push(OsStr::from_bytes(path));
            }
        }
        for (flag, names) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !names.is_empty() {
                self.call().args(["update-index", flag, "-z", "--stdin"]).stdin(nul_list(names)).done()?;
            }
        }
        Ok(())
    }

    /// Stages everything, and says what could not be.
    fn stage(&self) -> Result<Vec<PathBuf>, GitError> {
        let call = self.call().args(["add", "-A", "--sparse", "--ignore-errors", "--"]);
        let answer = call.args(self.slot.all_but_excluded()).answer()?;
        if answer.code == 0 {
            return Ok(Vec::new());
        }
        let changed = self.call().args(["diff-files", "--name-only", "-z"]).done()?;
        let new = self.call().args(["ls-files", "-o", "--exclude-standard", "-z"]).done()?;
        let paths = changed.parts().chain(new.parts());
        let mut left: Vec<PathBuf> = paths.map(path_of).collect();
        left.retain(|path| !self.slot.is_excluded(path));
        // It also says no where an excluded path is one that git ignores, and has staged everything else then.
        Ok(left)
    }

    /// Nested repositories with changes inside, which no tree of ours can have.
    fn changed_inside(&self) -> Result<Vec<PathBuf>, GitError> {
        let call =
            self.call().args(["diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=none"]);
        let steps = self.slot.repo.raw_steps(call.read_only())?;
        let links = steps.into_iter().filter(|step| step.from.as_ref().is_some_and(Entry::is_link));
        Ok(links.map(|step| PathBuf::from(step.path)).filter(|path| !self.slot.is_excluded(path)).collect())
    }

    fn restore_excluded(&self, base: &Sha) -> Result<(), GitError> {
        if self.slot.exclude.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["reset", "-q", "--no-refresh", "--pathspec-from-file=-"]).literal();
        call.arg("--pathspec-file-nul").arg(base).stdin(nul_list(&self.slot.exclude)).done().map(|_| ())
    }

    /// Takes back what only staging has changed: files whose bytes are those of the base.
    fn restore_unchanged(&self, steps: &[Step]) -> Result<bool, GitError> {
        let mut candidates = Vec::new();
        for step in steps {
            let (Some(from), Some(to)) = (&step.from, &step.to) else { continue };
            let found = self.slot.path.join(&step.path).symlink_metadata();
            if from.mode == to.mode && from.is_file() && found.is_ok_and(|found| found.is_file()) {
                candidates.push((step.path.as_os_str(), from));
            }
        }
        let names: Vec<&OsStr> = candidates.iter().map(|(path, _)| *path).collect();
        let mut entries = Vec::new();
        for ((path, from), now) in candidates.iter().zip(raw_hashes(|| self.slot.call(), &names)?) {
            if now == from.oid {
                entries.extend_from_slice(format!("{:o} {}\t", from.mode, from.oid).as_bytes());
                entries.extend_from_slice(path.as_bytes());
                entries.push(0);
            }
        }
        if entries.is_empty() {
            return Ok(false);
        }
        self.call().args(["update-index", "-z", "--index-info"]).stdin(entries).done()?;
        Ok(true)
    }

    fn tree(&self) -> Result<Sha, GitError> {
        self.call().arg("write-tree").done()?.sha()
    }
}

/// Copies an index with its time: git compares it with the times of files to know which to look into again.
pub(crate) fn copy_as_old(from: &Path, to: &Path) -> std::io::Result<()> {
    let time = from.metadata()?.modified()?;
    std::fs::copy(from, to)?;
    std::fs::OpenOptions::new().write(true).open(to)?.set_modified(time)
}

/// The hashes of files as they are, byte for byte.
pub(crate) fn raw_hashes<'a>(call: impl Fn() -> Call<'a>, names: &[&OsStr]) -> Result<Vec<Sha>, GitError> {
    hashes(call, &["hash-object", "--no-filters", "--"], names)
}

/// The hashes of files as git would stage them.
pub(crate) fn staged_hashes<'a>(call: impl Fn() -> Call<'a>, names: &[&OsStr]) -> Result<Vec<Sha>, GitError> {
    hashes(call, &["hash-object", "--"], names)
}

fn hashes<'a>(call: impl Fn() -> Call<'a>, args: &[&str], names: &[&OsStr]) -> Result<Vec<Sha>, GitError> {
    let mut found = Vec::with_capacity(names.len());
    let mut rest = names;
    while !rest.is_empty() {
        let mut bytes = 0;
        let mut fits = |name: &&OsStr| {
            bytes += name.len() + 1;
            bytes <= ARGUMENT_BYTES_MAX
        };
        let count = rest.iter().take_while(|name| fits(name)).count().max(1);
        let (now, later) = rest.split_at(count);
        let answer = call().args(args).args(now).read_only().done()?;
        let before = found.len();
        for line in answer.text()?.lines() {
            found.push(line.parse().map_err(|_| answer.odd())?);
        }
        if found.len() - before != now.len() {
            return Err(answer.odd());
        }
        rest = later;
    }
    Ok(found)
}
