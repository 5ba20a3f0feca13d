//! Two commits brought together as a tree, without a checkout.
//!
//! It must not touch a file or a ref: what comes out is a tree, or the conflicts.

use super::conflict::{self, Conflict, Stages};
use super::{GitError, Repo, Sha};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A tree without conflicts.
    Clean(Sha),
    /// The paths on which the two do not agree.
    Conflicted(Vec<Conflict>),
}

impl Repo {
    /// Merges a commit onto the tip of a run.
    pub fn merge(&self, tip: &Sha, work: &Sha) -> Result<Merged, GitError> {
        let call = self.call().config("merge.conflictStyle=merge");
        let answer =
            call.args(["merge-tree", "--write-tree", "-z", "--messages"]).arg(tip).arg(work).answer()?;
        if !matches!(answer.code, 0 | 1) {
            return Err(answer.failed());
        }
        let mut parts = answer.stdout.split(|b| *b == 0);
        let tree = parts.next().and_then(|part| std::str::from_utf8(part).ok()?.parse::<Sha>().ok());
        let tree = tree.ok_or_else(|| answer.odd())?;
        if answer.code == 0 {
            return Ok(Merged::Clean(tree));
        }
        let mut found: BTreeMap<OsString, Stages> = BTreeMap::new();
        // An empty part ends the list of paths. What follows is for people.
        for part in parts.take_while(|part| !part.is_empty()) {
            let (path, stage, entry) = conflict::stage(part).ok_or_else(|| answer.odd())?;
            found.entry(OsStr::from_bytes(path).to_owned()).or_default()[stage] = Some(entry);
        }
        conflict::describe(self, &tree, found).map(Merged::Conflicted)
    }

    /// The merge by which a commit came into `head`, and its parent that does not have the commit.
    /// The oldest where there are more; none where `head` is only built on top of the commit.
    pub fn merge_of(&self, commit: &Sha, head: &Sha) -> Result<Option<(Sha, Sha)>, GitError> {
        let range = format!("{commit}..{head}");
        let call = self.call().args(["rev-list", "--merges", "--parents", "--topo-order", "--reverse"]);
        let answer = call.args(["--ancestry-path"]).arg(range).arg("--").read_only().done()?;
        for line in answer.text()?.lines() {
            let mut all = line.split(' ').map(|sha| sha.parse::<Sha>().map_err(|_| answer.odd()));
            let Some(merge) = all.next().transpose()? else { continue };
            for parent in all {
                let parent = parent?;
                if !self.contains(&parent, commit)? {
                    return Ok(Some((merge, parent)));
                }
            }
        }
        Ok(None)
    }
}
