//! Submodules: repositories inside the repository, each with worktrees of its own.
//!
//! A slot has the submodules that are checked out in the user's tree, each as a slot of the
//! submodule's own repository: nothing is cloned, and commits that are made there are in the user's
//! submodule at once. What an attempt leaves there uncommitted becomes a commit of the submodule,
//! and the phase's work has the name of that commit.

use super::changes::{Entry, Step};
use super::{GitError, Repo, Sha, Slot};
use backstop_core::Sha256;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest `.gitmodules` that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Why the worktree of a submodule is locked.
const REASON: &str = "backstop submodule";

impl Repo {
    /// The paths of the submodules that are checked out in the user's tree.
    pub fn checked_out_submodules(&self) -> Vec<PathBuf> {
        let file = self.root().join(".gitmodules");
        let is_small =
            file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
        let text = if is_small { std::fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let paths = text.lines().filter_map(|line| {
            let (key, path) = line.split_once('=')?;
            (key.trim() == "path").then(|| PathBuf::from(path.trim().trim_matches('"')))
        });
        let is_below = |path: &PathBuf| {
            path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
                && !path.as_os_str().is_empty()
        };
        paths.filter(|path| is_below(path) && self.root().join(path).join(".git").exists()).collect()
    }

    /// The repository of a submodule. None where it is no repository of its own.
    fn submodule(&self, path: &Path) -> Result<Option<Repo>, GitError> {
        let found = Repo::find_with(&self.root().join(path), (*self.settings).clone())?;
        Ok(found.filter(|found| found.root() != self.root()))
    }

    /// Checks out the commits of submodules in the user's tree that these steps change, where the
    /// user has the one that was there and nothing of theirs is in the way. Says which.
    pub(crate) fn move_submodules(&self, steps: &[&Step]) -> Result<Vec<PathBuf>, GitError> {
        let mut moved = Vec::new();
        let known = if steps.is_empty() { Vec::new() } else { self.checked_out_submodules() };
        for step in steps {
            let (Some(from), Some(to)) = (&step.from, &step.to) else { continue };
            let path = Path::new(&step.path);
            if !from.is_link() || !to.is_link() || !known.iter().any(|known| known == path) {
                continue;
            }
            let Some(repo) = self.submodule(path)? else { continue };
            if repo.head()?.sha.as_ref() != Some(&from.oid) {
                continue;
            }
            let call = repo.call().args(["checkout", "-q", "--detach", "--no-recurse-submodules"]);
            if call.arg(&to.oid).arg("--").answer()?.code == 0 {
                let inner = repo.steps(&from.oid, &to.oid)?;
                repo.move_submodules(&inner.iter().collect::<Vec<_>>())?;
                moved.push(path.to_owned());
            }
        }
        Ok(moved)
    }
}

impl Slot {
    /// Whether the commit that the slot is at has submodules.
    pub(crate) fn has_submodules(&self) -> Result<bool, GitError> {
        Ok(!self.links(&self.at()?, &[])?.is_empty())
    }

    /// The submodules that a commit names, of these paths or of all.
    fn links(&self, at: &Sha, paths: &[PathBuf]) -> Result<Vec<(PathBuf, Sha)>, GitError> {
        let call = self.call().args(["ls-tree", "-r", "-z", "--full-tree"]).arg(at).arg("--").args(paths);
        let listed = call.read_only().done()?;
        let link = |line: &[u8]| {
            let (head, path) = line.split_at(line.iter().position(|byte| *byte == b'\t')?);
            let mut words = std::str::from_utf8(head).ok()?.split(' ');
            let entry =
                Entry { mode: u32::from_str_radix(words.next()?, 8).ok()?, oid: words.nth(1)?.parse().ok()? };
            entry.is_link().then(|| (super::answer::path_of(&path[1..]), entry.oid))
        };
        Ok(listed.parts().filter_map(link).collect())
    }

    /// The submodules of the user's tree that are in the slot.
    fn submodules(&self) -> Result<Vec<(PathBuf, Slot)>, GitError> {
        let mut found = Vec::new();
        for path in self.repo.checked_out_submodules() {
            let target = self.path.join(&path);
            if !target.join(".git").is_file() {
                continue;
            }
            let Some(repo) = self.repo.submodule(&path)? else { continue };
            if let Some(mut slot) = repo.open_slot(&target)? {
                slot.submodule_message.clone_from(&self.submodule_message);
                found.push((path, slot));
            }
        }
        Ok(found)
    }

    /// Puts the submodules of the user's tree here, at the commits that a commit of the repository
    /// names. What is in them is saved.
    pub(crate) fn place_submodules(&self, at: &Sha) -> Result<(), GitError> {
        let paths = self.repo.checked_out_submodules();
        if paths.is_empty() {
            return Ok(());
        }
        for (path, sha) in self.links(at, &paths)? {
            let Some(repo) = self.repo.submodule(&path)? else { continue };
            // A commit that the user's submodule does not have would have to be fetched: it stays
            // empty.
            if repo.tree_of(&sha).is_err() {
                continue;
            }
            let slot = repo.add_slot(&self.path.join(&path), &sha, REASON)?;
            if slot.was_there() {
                let saved = slot.save_in_submodule()?.0;
                slot.reset_to(&sha, Some(&saved))?;
            }
        }
        Ok(())
    }

    /// Saves what is in the submodules, each as a commit of its own, and says what could not be.
    #[expect(clippy::type_complexity)] // One caller, which takes it apart at once.
    pub(crate) fn save_submodules(&self) -> Result<(Vec<(PathBuf, Sha)>, Vec<PathBuf>), GitError> {
        let (mut saved, mut left) = (Vec::new(), Vec::new());
        for (path, slot) in self.submodules()? {
            let (sha, more) = slot.save_in_submodule()?;
            left.extend(more.into_iter().map(|inner| path.join(inner)));
            saved.push((path, sha));
        }
        Ok((saved, left))
    }

    /// A commit with all that is in this slot of a submodule: the one that is checked out, or a new
    /// one on top of it. The same content gives the same commit.
    fn save_in_submodule(&self) -> Result<(Sha, Vec<PathBuf>), GitError> {
        let base = self.at()?;
        let state = self.state(&base)?;
        let head = self.head()?.unwrap_or(base);
        if state.tree == self.repo.tree_of(&head)? {
            self.repo.keep(&head)?;
            return Ok((head, state.left));
        }
        let digest = Sha256::of(self.path.as_os_str().as_bytes()).hex();
        let name = format!("refs/backstop/submodules/{}", &digest[..16]);
        let earlier = self.repo.read_ref(&name)?;
        if let Some(earlier) = &earlier {
            let parents = super::save::parents_of(&self.repo, earlier)?;
            if self.repo.tree_of(earlier)? == state.tree && parents == [head.clone()] {
                return Ok((earlier.clone(), state.left));
            }
        }
        let sha = self.repo.commit_tree(&state.tree, &[&head], &self.submodule_message)?;
        if !self.repo.set_ref(&name, &sha, earlier.as_ref())? {
            return Err(GitError::Locked { file: self.repo.common_dir().join(name) });
        }
        // The ref moves on with the next change; a commit that a phase names does not go away.
        self.repo.set_ref(&format!("refs/backstop/kept/{sha}"), &sha, None)?;
        Ok((sha, state.left))
    }

    /// Takes the submodules out again, each only if nothing in it is lost by that.
    pub(crate) fn remove_submodules(&self) -> Result<(), GitError> {
        for (path, slot) in self.submodules()? {
            let repo = slot.repo.clone();
            repo.remove_slot(slot)?;
            let folder = self.path.join(path);
            // Git expects an empty folder where a submodule is not checked out.
            std::fs::create_dir_all(&folder).map_err(|error| GitError::io(&folder, &error))?;
        }
        Ok(())
    }
}
