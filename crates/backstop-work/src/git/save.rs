//! Saving an attempt: everything that is in a slot, as a commit on a private ref.
//!
//! It is plumbing: no hook runs and nothing is signed. The commits of whoever worked here stay
//! reachable from it. It must not change anything in the slot, and it must not make an earlier save
//! unreachable.

use super::changes::{Changed, Entry};
use super::state::State;
use super::{GitError, Repo, Sha, Slot, repo};
use backstop_core::SafeText;
use std::path::PathBuf;

/// How many commits of an attempt's own are listed.
const OWN_COMMITS_MAX: usize = 200;

/// An attempt that is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The commit.
    pub sha: Sha,
    /// Its tree.
    pub tree: Sha,
    /// What changed since the base.
    pub changed: Vec<Changed>,
    /// Commits that were made in the slot, newest first, up to 200.
    pub own_commits: Vec<OwnCommit>,
    /// The commit that is checked out in the slot; the base where there is none.
    pub head: Sha,
    /// What could not be saved: nested repositories, of which only the name of a commit is in the
    /// tree or nothing at all, and files that cannot be read.
    pub unsaved: Vec<PathBuf>,
    /// Files that were written and need a filter whose program is missing.
    pub unfiltered: Vec<PathBuf>,
}

/// A commit that was made in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommit {
    /// The commit.
    pub sha: Sha,
    /// The first line of its message.
    pub subject: SafeText,
}

impl Slot {
    /// Saves what is in the slot as a commit on a ref: deletions and new files too, ignored and
    /// excluded ones not.
    ///
    /// Saving the same again gives the same commit. Where the ref has another one, that one becomes
    /// a parent.
    pub fn save(&self, base: &Sha, refname: &str, message: &str) -> Result<Saved, GitError> {
        self.save_state(self.state(base)?, base, refname, message)
    }

    /// The same of a state that was looked at just before: nobody may have been at work in the slot
    /// since.
    pub fn save_state(
        &self,
        state: State,
        base: &Sha,
        refname: &str,
        message: &str,
    ) -> Result<Saved, GitError> {
        let head = self.head()?.unwrap_or_else(|| base.clone());
        let mut parents = vec![head.clone()];
        if !self.repo.contains(&head, base)? {
            parents.insert(0, base.clone());
        }
        let sha = self.keep_state(refname, &state.tree, parents, message)?;
        let steps = self.repo.steps(base, &state.tree)?;
        // Of a nested repository at a new commit, the tree has nothing but the name of that commit.
        // Of a submodule that commit is kept in the user's own.
        let links = steps.iter().filter(|step| step.to.as_ref().is_some_and(Entry::is_link));
        let mut unsaved = state.left;
        let links = links.map(|step| PathBuf::from(&step.path));
        unsaved.extend(links.filter(|path| !state.submodules.iter().any(|(known, _)| known == path)));
        unsaved.sort();
        unsaved.dedup();
        let changed = self.repo.changed_paths(base, &state.tree)?;
        Ok(Saved {
            unfiltered: self.unfiltered(&changed)?,
            changed,
            own_commits: self.own_commits(base, &head)?,
            sha,
            tree: state.tree,
            head,
            unsaved,
        })
    }

    fn keep_state(
        &self,
        refname: &str,
        tree: &Sha,
        mut parents: Vec<Sha>,
        message: &str,
    ) -> Result<Sha, GitError> {
        let earlier = self.repo.read_ref(refname)?;
        if let Some(earlier) = &earlier {
            if &self.repo.tree_of(earlier)? == tree && parents_of(&self.repo, earlier)?.starts_with(&parents)
            {
                return Ok(earlier.clone());
            }
            parents.push(earlier.clone());
        }
        let parents: Vec<&Sha> = parents.iter().collect();
        let sha = self.repo.commit_tree(tree, &parents, message)?;
        if self.repo.set_ref(refname, &sha, earlier.as_ref())? {
            return Ok(sha);
        }
        // Somebody else saves to the same ref: two run with one name.
        Err(GitError::Locked { file: self.repo.common_dir().join(refname) })
    }

    /// Commits that are in no other branch or tag, and not in the base.
    fn own_commits(&self, base: &Sha, head: &Sha) -> Result<Vec<OwnCommit>, GitError> {
        if base == head {
            return Ok(Vec::new());
        }
        let branch = repo::branch(&self.repo.settings, &self.path, &self.git_dir)?;
        let call = self.call().args(["rev-list", "--no-commit-header", "--format=%H %s", "--encoding=UTF-8"]);
        let mut call = call.arg(format!("--max-count={OWN_COMMITS_MAX}")).arg(head).arg("--not").arg(base);
        if let Some(name) = branch.as_deref().and_then(|name| name.strip_prefix("refs/heads/")) {
            call = call.arg(format!("--exclude={name}"));
        }
        let answer = call.args(["--branches", "--remotes", "--tags", "--"]).read_only().done()?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let commit = |line: &str| {
            let (sha, subject) = line.split_once(' ').unwrap_or((line, ""));
            Some(OwnCommit { sha: sha.parse().ok()?, subject: SafeText::from(subject) })
        };
        Ok(text.lines().filter_map(commit).collect())
    }
}

pub(crate) fn parents_of(repo: &Repo, commit: &Sha) -> Result<Vec<Sha>, GitError> {
    let answer = repo.call().args(["rev-parse"]).arg(format!("{commit}^@")).lasting().done()?;
    answer.text()?.lines().map(|line| line.parse().map_err(|_| answer.odd())).collect()
}
