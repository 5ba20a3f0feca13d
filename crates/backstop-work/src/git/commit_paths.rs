//! A commit of exactly these paths in the user's own tree, for work without worktrees.
//!
//! What else the user has staged stays staged, and is in no commit of ours.

use super::call::nul_list;
use super::commit::{hooks_folder, message_bytes};
use super::slot::remove_if_there;
use super::{CommitTrouble, Committed, GitError, Repo, trouble};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The list of paths for `git commit`, in git's own folder: its standard input has the message.
const LIST: &str = "backstop-paths";

impl Repo {
    /// Commits these paths as they are in the working tree, new and deleted ones too. Paths that
    /// are unchanged or ignored are passed over. Whether a hook changed them is not known here.
    pub fn commit_paths(&self, paths: &[OsString], message: &str) -> Result<Committed, CommitTrouble> {
        let changes = self.changes()?;
        let wanted: Vec<&OsString> = paths.iter().filter(|path| changes.contains_key(*path)).collect();
        if wanted.is_empty() {
            return Err(CommitTrouble::NoChange);
        }
        let new: Vec<&OsString> = wanted.iter().copied().filter(|path| changes[*path]).collect();
        self.add(&new)?;
        let list = self.git_dir().join(LIST);
        let done = self.commit_listed(&list, &wanted, message);
        remove_if_there(&list)?;
        if done.is_err() {
            // They were untracked before.
            self.unstage(&new)?;
        }
        done
    }

    fn commit_listed(
        &self,
        list: &Path,
        paths: &[&OsString],
        message: &str,
    ) -> Result<Committed, CommitTrouble> {
        std::fs::write(list, nul_list(paths)).map_err(|error| GitError::io(list, &error))?;
        let mut from_file = OsString::from("--pathspec-from-file=");
        from_file.push(list);
        let call =
            self.call().config("i18n.commitEncoding=UTF-8").args(["commit", "-q", "--cleanup=verbatim"]);
        let call = call.args(["-F", "-", "--only", "--pathspec-file-nul"]).arg(from_file).literal();
        let before = self.head()?.sha;
        let answer = call.stdin(message_bytes(message)).with_hooks().answer()?;
        let after = self.head()?.sha;
        match after {
            Some(sha) if answer.code == 0 && Some(&sha) != before.as_ref() => {
                Ok(Committed { tree: self.tree_of(&sha)?, sha, changed_by_hook: false })
            }
            _ => Err(trouble::read(&answer, &hooks_folder(self.call(), self.root())?)),
        }
    }

    /// What differs from the last commit, and whether git does not know it yet.
    fn changes(&self) -> Result<HashMap<OsString, bool>, GitError> {
        let call = self.call().args(["status", "--porcelain=v1", "-z", "--no-renames"]);
        let call = call.args(["--untracked-files=all", "--ignore-submodules=untracked"]).read_only();
        let mut found = HashMap::new();
        for part in call.done()?.parts() {
            let Some((code, [b' ', path @ ..])) = part.split_at_checked(2) else { continue };
            *found.entry(OsStr::from_bytes(path).to_owned()).or_insert(false) |= code == b"??";
        }
        Ok(found)
    }

    fn add(&self, paths: &[&OsString]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul"]).literal();
        call.stdin(nul_list(paths)).done().map(|_| ())
    }

    fn unstage(&self, paths: &[&OsString]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let call =
            self.call().args(["reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul"]).literal();
        call.stdin(nul_list(paths)).done().map(|_| ())
    }
}
