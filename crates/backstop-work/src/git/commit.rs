//! Commits: plumbing ones for what is only kept, real ones for what the user gets.
//!
//! A real commit is made by `git commit` in a slot, so that hooks and signing work as the user has
//! set them up.

use super::answer::path_of;
use super::call::{Call, nul_list};
use super::save::parents_of;
use super::{CommitTrouble, GitError, Repo, Sha, Slot, trouble};
use std::path::{Path, PathBuf};

/// Who commits where git knows nobody.
const NAME: &str = "Backstop";
const EMAIL: &str = "backstop@localhost";

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The commit.
    pub sha: Sha,
    /// Its tree.
    pub tree: Sha,
    /// Whether a hook has changed the files: then the tree is not the one that was asked for.
    pub changed_by_hook: bool,
}

impl Repo {
    /// Makes a commit object. No hook runs, nothing is signed and no ref moves. Where git does not
    /// know who commits, Backstop does.
    pub fn commit_tree(&self, tree: &Sha, parents: &[&Sha], message: &str) -> Result<Sha, GitError> {
        let call = || {
            let mut call =
                self.call().config("i18n.commitEncoding=UTF-8").args(["commit-tree", "--no-gpg-sign"]);
            for parent in parents {
                call = call.arg("-p").arg(parent);
            }
            call.args(["-F", "-"]).arg(tree).stdin(message_bytes(message))
        };
        let answer = call().answer()?;
        if trouble::nobody(&answer) {
            return anybody(call()).done()?.sha();
        }
        if answer.code != 0 {
            return Err(answer.failed());
        }
        let sha = answer.sha()?;
        self.remember(&sha, tree, parents);
        Ok(sha)
    }

    /// Commits a tree on top of a parent, in a slot whose files are that tree already or all saved.
    /// Hooks and signing work; no ref moves. What a hook makes of the files is what is committed.
    ///
    /// Afterwards the slot is at the new commit. Where it failed, the slot has the tree on top of
    /// the parent.
    pub fn commit_in(
        &self,
        slot: &Slot,
        tree: &Sha,
        parent: &Sha,
        message: &str,
    ) -> Result<Committed, CommitTrouble> {
        self.commit_with(slot, tree, parent, message, false)
    }

    /// The same where the slot's files are that tree: it was saved, and nobody has worked there
    /// since. The caller knows that; files are not looked at again.
    pub fn commit_saved_in(
        &self,
        slot: &Slot,
        tree: &Sha,
        parent: &Sha,
        message: &str,
    ) -> Result<Committed, CommitTrouble> {
        self.commit_with(slot, tree, parent, message, true)
    }

    fn commit_with(
        &self,
        slot: &Slot,
        tree: &Sha,
        parent: &Sha,
        message: &str,
        is_saved: bool,
    ) -> Result<Committed, CommitTrouble> {
        if self.tree_of(parent)? == *tree {
            return Err(CommitTrouble::NoChange);
        }
        slot.put(parent, tree, is_saved)?;
        if let Some(made) = self.plain_commit(slot, tree, parent, message)? {
            return Ok(made);
        }
        let call =
            slot.call().config("i18n.commitEncoding=UTF-8").args(["commit", "-q", "--cleanup=verbatim"]);
        let answer = call.args(["-F", "-"]).stdin(message_bytes(message)).with_hooks().answer()?;
        let head = slot.head()?.unwrap_or_else(|| parent.clone());
        if answer.code != 0 || head == *parent {
            let trouble = trouble::read(&answer, &hooks_folder(slot.call(), &slot.path)?);
            slot.put_files(tree)?;
            return Err(trouble);
        }
        // What a hook left lying about is nobody's work.
        slot.call().args(["reset", "--hard", "-q"]).arg(&head).done()?;
        slot.clean()?;
        slot.set_mark(&head)?;
        slot.place_submodules(&head)?;
        if !parents_of(self, &head)?.contains(parent) {
            return Err(answer.odd().into());
        }
        let made = self.tree_of(&head)?;
        Ok(Committed { changed_by_hook: made != *tree, tree: made, sha: head })
    }

    /// The commit of `git commit` where it would run nothing and sign nothing, made without looking
    /// at every file twice more. None where it has to be made by `git commit`.
    fn plain_commit(
        &self,
        slot: &Slot,
        tree: &Sha,
        parent: &Sha,
        message: &str,
    ) -> Result<Option<Committed>, GitError> {
        if !slot.commits_plainly()? {
            return Ok(None);
        }
        let call = slot.call().config("i18n.commitEncoding=UTF-8").args(["commit-tree", "--no-gpg-sign"]);
        let call = call.arg("-p").arg(parent).args(["-F", "-"]).arg(tree).stdin(message_bytes(message));
        let answer = call.answer()?;
        if answer.code != 0 {
            // `git commit` says what is missing.
            return Ok(None);
        }
        let sha = answer.sha()?;
        self.remember(&sha, tree, &[parent]);
        slot.call().args(["update-ref", "--no-deref", "HEAD"]).arg(&sha).arg(parent).done()?;
        slot.set_mark(&sha)?;
        slot.has_kept(tree, &sha);
        slot.place_submodules(&sha)?;
        Ok(Some(Committed { changed_by_hook: false, tree: tree.clone(), sha }))
    }
}

/// The hooks that a commit runs.
const COMMIT_HOOKS: &[&str] = &[
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "reference-transaction",
];

impl Slot {
    /// Puts the slot at a commit with the files of another tree, staged.
    fn put(&self, parent: &Sha, tree: &Sha, is_saved: bool) -> Result<(), GitError> {
        if !is_saved && self.tree_hash()? != *tree {
            self.reset_to(parent, None)?;
            return self.put_files(tree);
        }
        // The files are right: they are not written again, so that nothing needs to be built again.
        self.check_head(None)?;
        self.unlock()?;
        self.detach()?;
        self.take_kept_index(tree)?;
        if self.head()?.as_ref() != Some(parent) {
            self.call().args(["update-ref", "--no-deref", "HEAD"]).arg(parent).done()?;
        }
        self.set_mark(parent)?;
        self.restore_excluded_files()?;
        self.has_own(tree);
        Ok(())
    }

    /// Whether a commit made here runs no hook and is not signed.
    fn commits_plainly(&self) -> Result<bool, GitError> {
        let names = r"^(hook\..*|commit\.gpgsign|core\.hookspath)$";
        let call = self.call().args(["config", "-z", "--get-regexp", names]);
        let found = call.with_hooks().read_only().answer()?;
        let is_folder = |part: &&[u8]| part.to_ascii_lowercase().starts_with(b"core.hookspath");
        let is_off = |part: &[u8]| {
            let text = String::from_utf8_lossy(part).to_lowercase();
            let value = text.strip_prefix("commit.gpgsign\n");
            value.is_some_and(|value| ["false", "no", "off", "0", ""].contains(&value))
        };
        if !found.parts().filter(|part| !is_folder(part)).all(is_off) {
            return Ok(false);
        }
        let hooks = match found.parts().find(is_folder) {
            Some(_) => hooks_folder(self.call(), &self.path)?,
            None => self.repo.common_dir().join("hooks"),
        };
        Ok(!COMMIT_HOOKS.iter().any(|hook| hooks.join(hook).exists()))
    }

    fn put_files(&self, tree: &Sha) -> Result<(), GitError> {
        self.call().args(["read-tree", "--reset", "-u"]).arg(tree).done()?;
        self.clean()
    }

    /// Tracked files that belong to no attempt are as they were committed.
    fn restore_excluded_files(&self) -> Result<(), GitError> {
        if self.exclude.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["diff-files", "--name-only", "-z", "--ignore-submodules=all", "--"]);
        let changed = call.args(&self.exclude).literal().read_only().done()?;
        let names: Vec<PathBuf> = changed.parts().map(path_of).collect();
        if names.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["checkout-index", "-f", "-q", "-u", "-z", "--stdin"]);
        call.stdin(nul_list(&names)).done().map(|_| ())
    }
}

/// Where hooks would be.
pub(crate) fn hooks_folder(call: Call<'_>, folder: &Path) -> Result<PathBuf, GitError> {
    let answer = call.args(["rev-parse", "--git-path", "hooks"]).with_hooks().read_only().done()?;
    Ok(folder.join(answer.path()))
}

/// A message as git takes it: with a line end, and without what git cannot store.
pub(crate) fn message_bytes(message: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = message.bytes().filter(|b| *b != 0).collect();
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes
}

/// The same call, by Backstop itself.
fn anybody(call: Call<'_>) -> Call<'_> {
    let call = call.env("GIT_AUTHOR_NAME", NAME).env("GIT_AUTHOR_EMAIL", EMAIL);
    call.env("GIT_COMMITTER_NAME", NAME).env("GIT_COMMITTER_EMAIL", EMAIL)
}
