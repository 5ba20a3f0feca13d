//! What is in a slot now, as a tree.
//!
//! Everything is staged into an index of our own: what whoever worked here has done with theirs is
//! only read, so that a half merge or a lock left behind is no obstacle. It is kept, so that the
//! next look costs one pass over the files and what has changed. Paths that the slot excludes are
//! as they were at the base. A file whose bytes did not change does not change, even where staging
//! it would turn its line ends.

use super::answer::path_of;
use super::call::{ARGUMENT_BYTES_MAX, Call, nul_list};
use super::changes::{Entry, Step};
use super::slot::remove_if_there;
use super::working::Stamp;
use super::{GitError, Sha, Slot};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Our own index.
const INDEX: &str = "backstop-index";
/// One look in so many writes down which files were touched and not changed, and which folders have
/// nothing new; the others read such files again. In a large repository writing takes as long as a
/// third of a look.
const LOOKS_PER_WRITE: u32 = 8;

/// What is in a slot.
#[derive(Debug)]
pub struct State {
    /// Its tree.
    pub tree: Sha,
    /// What could not be read into the tree, and nested repositories with changes inside.
    pub(crate) left: Vec<PathBuf>,
    /// The submodules of the user's tree that are here, with the commits that have what is in them.
    pub(crate) submodules: Vec<(PathBuf, Sha)>,
}

/// An index of our own, kept from one look to the next: what git saw of a file that has not changed
/// it need not read again. Whoever works in the slot has theirs.
struct Index<'a> {
    slot: &'a Slot,
    file: PathBuf,
    /// Whether it is from an earlier look.
    is_kept: bool,
}

impl Slot {
    /// The tree of what is here now, without saving anything: what a gate has verified.
    pub fn tree_hash(&self) -> Result<Sha, GitError> {
        Ok(self.state(&self.at()?)?.tree)
    }

    /// What is here now. Excluded paths are as they were at the base.
    pub fn state(&self, base: &Sha) -> Result<State, GitError> {
        let (submodules, left) = self.save_submodules()?;
        let index = Index::begin(self, base)?;
        let (tree, more) = match index.read(base, &submodules) {
            // Whatever is wrong with what was kept: begun anew it is not.
            Err(_) if index.is_kept => {
                remove_if_there(&index.file)?;
                Index::begin(self, base)?.read(base, &submodules)?
            }
            read => read?,
        };
        Ok(State { tree, left: left.into_iter().chain(more).collect(), submodules })
    }

    /// Makes the index of the last look, which has this tree, the slot's own; files are not read
    /// again.
    pub(crate) fn take_kept_index(&self, tree: &Sha) -> Result<(), GitError> {
        let kept = self.git_dir.join(INDEX);
        if self.keeps(tree)? && copy_as_old(&kept, &self.git_dir.join("index")).is_ok() {
            return Ok(());
        }
        self.call().args(["read-tree", "--reset"]).arg(tree).done()?;
        // Says 1 where a file needs an update: line ends that git would turn.
        self.call().args(["update-index", "-q", "--refresh"]).answer().map(|_| ())
    }

    /// Whether the index that is kept has a tree.
    fn keeps(&self, tree: &Sha) -> Result<bool, GitError> {
        let kept = self.git_dir.join(INDEX);
        if is_known(&self.indexes().kept, &kept, tree) {
            return Ok(true);
        }
        let call = self.call().index(&kept).arg("write-tree").answer()?;
        Ok(call.code == 0 && call.sha().is_ok_and(|found| found == *tree))
    }

    /// Notes that the slot's own index has a tree.
    pub(crate) fn has_own(&self, tree: &Sha) {
        self.indexes().own = Stamp::at(&self.git_dir.join("index")).map(|stamp| (stamp, tree.clone()));
    }

    /// Notes that a tree was committed: what is excluded is in the index that is kept as it is in
    /// the commit, if that index has the tree.
    pub(crate) fn has_kept(&self, tree: &Sha, commit: &Sha) {
        let mut indexes = self.indexes();
        if is_known(&indexes.kept, &self.git_dir.join(INDEX), tree) {
            indexes.excluded_at = Some(commit.clone());
        }
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
    /// The one that is kept, else from the index that is there, else from the commit that is
    /// checked out, else from the base.
    fn begin(slot: &'a Slot, base: &Sha) -> Result<Self, GitError> {
        let mut index = Index { slot, file: slot.git_dir.join(INDEX), is_kept: false };
        remove_if_there(&slot.git_dir.join(format!("{INDEX}.lock")))?;
        // Which files a sparse checkout leaves out, only the slot's own index knows.
        if index.file.is_file() && !index.is_sparse()? {
            index.is_kept = true;
            return Ok(index);
        }
        remove_if_there(&index.file)?;
        slot.indexes().excluded_at = None;
        if copy_as_old(&slot.git_dir.join("index"), &index.file).is_ok() && index.unhide().is_ok() {
            return Ok(index);
        }
        remove_if_there(&index.file)?;
        let head = slot.head()?.unwrap_or_else(|| base.clone());
        index.call().arg("read-tree").arg(head).done()?;
        Ok(index)
    }

    /// The tree of what is here, and what could not be read into it.
    fn read(&self, base: &Sha, submodules: &[(PathBuf, Sha)]) -> Result<(Sha, Vec<PathBuf>), GitError> {
        let changed = if self.is_kept { self.stage_changed(base, submodules)? } else { None };
        let left = match changed {
            Some(left) => left,
            None => {
                let mut left = self.stage()?;
                left.extend(self.changed_inside()?);
                left.retain(|path| !submodules.iter().any(|(known, _)| known == path));
                left
            }
        };
        self.restore_excluded(base)?;
        self.set_links(submodules)?;
        let tree = self.tree()?;
        let unturned = self.restore_unchanged(&self.slot.repo.steps(base, &tree)?)?;
        Ok((if unturned { self.tree()? } else { tree }, left))
    }

    /// Stages what differs from the last look, found in one pass over the files. None where that
    /// cannot be done.
    fn stage_changed(
        &self,
        base: &Sha,
        submodules: &[(PathBuf, Sha)],
    ) -> Result<Option<Vec<PathBuf>>, GitError> {
        // Folders that did not change are not listed again.
        let call = self.call().config("core.untrackedCache=true").config("status.showUntrackedFiles=all");
        let mut call = call.args(["status", "--porcelain=v2", "-z", "--no-renames"]);
        if !self.is_to_be_written() {
            call = call.read_only();
        }
        let found = call.args(["--untracked-files=all", "--ignore-submodules=none"]).done()?;
        let (mut names, mut left) = (self.added_by_others(base)?, Vec::new());
        names.retain(|path| !self.slot.is_excluded(path));
        for part in found.parts() {
            let Some(Difference { path, is_staged, is_changed_inside }) = difference(part) else {
                return Ok(None);
            };
            let path = path_of(path.strip_suffix(b"/").unwrap_or(path));
            if self.slot.is_excluded(&path) || submodules.iter().any(|(known, _)| *known == path) {
                continue;
            }
            if is_changed_inside {
                left.push(path.clone());
            }
            if !is_staged {
                names.push(path);
            }
        }
        if !names.is_empty() {
            let call = self.call().args(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"]);
            if call.stdin(nul_list(&names)).answer()?.code != 0 {
                return Ok(None);
            }
        }
        Ok(Some(left))
    }

    /// Whether a look writes the index although nothing is to be staged.
    fn is_to_be_written(&self) -> bool {
        let looks = &mut self.slot.indexes().looks;
        *looks = looks.wrapping_add(1);
        *looks % LOOKS_PER_WRITE == 1
    }

    /// What whoever worked here has staged that the base does not have: ignored files too, if they
    /// insisted.
    fn added_by_others(&self, base: &Sha) -> Result<Vec<PathBuf>, GitError> {
        let is_ours = {
            let tree = self.slot.repo.tree_of(base)?;
            is_known(&self.slot.indexes().own, &self.slot.git_dir.join("index"), &tree)
        };
        if is_ours {
            return Ok(Vec::new());
        }
        let call = self.slot.call().args(["diff-index", "--cached", "--name-only", "-z", "--no-renames"]);
        let added =
            call.args(["--diff-filter=A", "--ignore-submodules=all"]).arg(base).read_only().answer()?;
        let is_file = |path: &PathBuf| {
            let found = self.slot.path.join(path).symlink_metadata();
            found.is_ok_and(|found| found.is_file() || found.is_symlink())
        };
        Ok(if added.code == 0 { added.parts().map(path_of).filter(is_file).collect() } else { Vec::new() })
    }

    /// Sets the commits of submodules.
    fn set_links(&self, submodules: &[(PathBuf, Sha)]) -> Result<(), GitError> {
        if submodules.is_empty() {
            return Ok(());
        }
        let mut entries = Vec::new();
        for (path, sha) in submodules {
            entries.extend_from_slice(format!("160000 {sha}\t").as_bytes());
            entries.extend_from_slice(path.as_os_str().as_bytes());
            entries.push(0);
        }
        self.call().args(["update-index", "-z", "--index-info"]).stdin(entries).done().map(|_| ())
    }

    fn call(&self) -> Call<'_> {
        self.slot.call().index(&self.file)
    }

    fn is_sparse(&self) -> Result<bool, GitError> {
        if !self.slot.git_dir.join("info/sparse-checkout").exists() {
            return Ok(false);
        }
        let call = self.slot.call().args(["config", "--type=bool", "--get", "core.sparseCheckout"]);
        Ok(call.answer()?.line() == b"true")
    }

    /// Takes the flags away that make git look past a changed file.
    fn unhide(&self) -> Result<(), GitError> {
        let sparse = self.is_sparse()?;
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
        // It also says no where an excluded path is one that git ignores, and has staged everything
        // else then.
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
        let before = self.slot.indexes().excluded_at.clone();
        if before.as_ref() == Some(base) {
            return Ok(());
        }
        if let Some(before) = before {
            let call =
                self.slot.call().literal().args(["diff-tree", "-r", "-z", "--raw"]).arg(before).arg(base);
            if call.arg("--").args(&self.slot.exclude).read_only().done()?.stdout.is_empty() {
                return Ok(());
            }
        }
        self.slot.indexes().excluded_at = Some(base.clone());
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
        let tree = self.call().arg("write-tree").done()?.sha()?;
        self.slot.indexes().kept = Stamp::at(&self.file).map(|stamp| (stamp, tree.clone()));
        Ok(tree)
    }
}

/// Whether an index has this tree, as far as that is known: nobody has written it since.
fn is_known(known: &Option<(Stamp, Sha)>, file: &Path, tree: &Sha) -> bool {
    known.as_ref().is_some_and(|(stamp, found)| found == tree && Stamp::at(file) == Some(*stamp))
}

/// A line of `git status --porcelain=v2`.
struct Difference<'l> {
    path: &'l [u8],
    /// Whether the files are as the index has them; then only the index differs from the last
    /// commit.
    is_staged: bool,
    /// Whether it is a nested repository with changes inside.
    is_changed_inside: bool,
}

fn difference(line: &[u8]) -> Option<Difference<'_>> {
    let (kind, fields) = match line.first()? {
        b'?' => return Some(Difference { path: line.get(2..)?, is_staged: false, is_changed_inside: false }),
        b'1' => (b'1', 9),
        b'u' => (b'u', 11),
        _ => return None,
    };
    let mut parts = line.splitn(fields, |byte| *byte == b' ').skip(1);
    let (state, submodule) = (parts.next()?, parts.next()?);
    let is_inside =
        submodule.first() == Some(&b'S') && submodule.get(2..4).is_some_and(|inside| inside != b"..");
    Some(Difference {
        path: parts.last()?,
        is_staged: kind == b'1' && state.get(1) == Some(&b'.'),
        is_changed_inside: is_inside,
    })
}

/// Copies an index with its time: git compares it with the times of files to know which to look
/// into again.
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
