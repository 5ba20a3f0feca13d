//! Landing: the user's checked-out branch is fast-forwarded, with its files.
//!
//! It must not move a branch that has moved, and must not overwrite what the user has changed.
//! Called again after a crash, it completes what was begun.

use super::answer::path_of;
use super::call::nul_list;
use super::changes::Step;
use super::slot::{read_short, remove_if_there};
use super::working::{Now, StepState, paths_of};
use super::{GitError, Repo, Sha};
use backstop_core::SafeText;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Says which landing has begun, in git's own folder: files that are cut off are then known to be
/// ours.
const NOTE: &str = "backstop-landing";
/// The last exit code that is git's own. What is above says that a signal ended it.
const KILLED: i32 = 128;

/// What came of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// The branch is there now.
    Done,
    /// It was there already.
    AlreadyThere,
    /// The branch is somewhere else. Nothing was touched.
    Moved {
        /// Where it is. None where it is gone.
        now: Option<Sha>,
    },
    /// Another branch is checked out. Nothing was touched.
    OtherBranch {
        /// Which one. None where there is a commit without a branch.
        now: Option<String>,
    },
    /// The user has changes in the way. Nothing was touched.
    Refused {
        /// Why.
        why: SafeText,
        /// The files in the way, as far as they are known.
        files: Vec<PathBuf>,
    },
}

impl Repo {
    /// Fast-forwards the checked-out branch from one commit to a later one, with the user's files.
    /// `branch` is the one that must be checked out, as `refs/heads/main`; None means a commit
    /// without a branch.
    pub fn land_ff(&self, branch: Option<&str>, from: &Sha, to: &Sha) -> Result<Landing, GitError> {
        if let Some(ended) = self.elsewhere(branch, from, to)? {
            return Ok(ended);
        }
        self.take_back_other(from, to)?;
        match self.land_once(branch, from, to) {
            // What it has written is known to be ours, and is taken back first.
            Err(GitError::Failed { code, .. }) if code > KILLED => self.land_once(branch, from, to),
            landing => landing,
        }
    }

    /// Takes back what a landing of another commit has written that was cut off.
    fn take_back_other(&self, from: &Sha, to: &Sha) -> Result<(), GitError> {
        let note = self.git_dir().join(NOTE);
        let words = read_short(&note).unwrap_or_default();
        let Some((began, other)) = words.trim_end().split_once(' ') else { return Ok(()) };
        let Ok(other) = other.parse::<Sha>() else { return Ok(()) };
        if began != from.as_str() || other == *to {
            return Ok(());
        }
        // A commit that is gone tells nothing.
        let Ok(steps) = self.steps(from, &other) else { return Ok(()) };
        let looks = self.look(steps)?;
        let (half, _) = self.in_the_way(from, &looks, true)?;
        self.roll_back(&half)?;
        remove_if_there(&note)
    }

    fn land_once(&self, branch: Option<&str>, from: &Sha, to: &Sha) -> Result<Landing, GitError> {
        let steps = self.steps(from, to)?;
        let links: Vec<Step> = steps.iter().filter(|step| step.is_of_links()).cloned().collect();
        let looks = self.look(steps)?;
        let note = self.git_dir().join(NOTE);
        let words = format!("{from} {to}\n");
        let begun = read_short(&note).as_deref() == Some(words.as_str());
        let (half, files) = self.in_the_way(from, &looks, begun)?;
        if !files.is_empty() {
            let why = SafeText::from("files that would be written have changes that are not committed");
            return Ok(Landing::Refused { why, files });
        }
        self.roll_back(&half)?;
        std::fs::write(&note, words).map_err(|error| GitError::io(&note, &error))?;
        let call = self.call().args(["merge", "-q", "--ff-only", "--no-autostash", "--no-overwrite-ignore"]);
        let answer = call.args(["--no-squash", "--no-stat"]).arg(to).with_hooks().answer();
        if !begun && matches!(answer, Err(GitError::Locked { .. })) {
            // It has not begun: what is gone now is gone by the user's hand.
            remove_if_there(&note)?;
        }
        let answer = answer?;
        let not_written = match answer.not_written() {
            // Where it names files of the user's, it has written none.
            Some(_) if answer.code <= KILLED && listed(&answer.stderr).is_empty() => Some(answer.failed()),
            _ => None,
        };
        if not_written.is_some() && self.elsewhere(branch, from, to)?.is_none() {
            let looks = self.look(self.steps(from, to)?)?;
            let (half, _) = self.in_the_way(from, &looks, true)?;
            self.roll_back(&half)?;
        }
        if answer.code <= KILLED {
            remove_if_there(&note)?;
        }
        match self.elsewhere(branch, from, to)? {
            Some(Landing::AlreadyThere) => {
                self.move_submodules(&links.iter().collect::<Vec<_>>())?;
                Ok(Landing::Done)
            }
            Some(ended) => Ok(ended),
            None => {
                if let Some(error) = not_written {
                    return Err(error);
                }
                if answer.code > KILLED {
                    return Err(answer.failed());
                }
                let files = listed(&answer.stderr);
                Ok(Landing::Refused { why: SafeText::from_bytes(answer.stderr.trim_ascii()), files })
            }
        }
    }

    /// Why there is nothing to be done, if there is not.
    fn elsewhere(&self, branch: Option<&str>, from: &Sha, to: &Sha) -> Result<Option<Landing>, GitError> {
        let head = self.head()?;
        let now = match branch {
            Some(branch) => self.read_ref(branch)?,
            None => head.sha.clone(),
        };
        if let Some(now) = &now
            && self.contains(now, to)?
        {
            return Ok(Some(Landing::AlreadyThere));
        }
        if head.branch.as_deref() != branch {
            return Ok(Some(Landing::OtherBranch { now: head.branch }));
        }
        Ok((now.as_ref() != Some(from)).then_some(Landing::Moved { now }))
    }

    /// The paths that a landing that was cut off has already written, and those that the user has
    /// changed.
    fn in_the_way<'a>(
        &self,
        from: &Sha,
        looks: &'a [StepState],
        begun: bool,
    ) -> Result<(Vec<&'a StepState>, Vec<PathBuf>), GitError> {
        let call = self.call().args(["diff-index", "--cached", "--raw", "-z", "--no-renames"]).arg(from);
        let staged: HashMap<OsString, _> = self
            .raw_steps(call.arg("--").read_only())?
            .into_iter()
            .map(|step| (step.path, step.to))
            .collect();
        let (mut half, mut files) = (Vec::new(), Vec::new());
        for look in looks {
            let index = staged.get(&look.step.path);
            match (look.now, index) {
                (Now::Nested, _) | (Now::From, None) => {}
                (Now::To, None) => half.push(look),
                (Now::To, Some(entry)) if *entry == look.step.to => {}
                (Now::Other, None) if begun && self.is_cut_off(look)? => half.push(look),
                _ => files.push(PathBuf::from(&look.step.path)),
            }
        }
        Ok((half, files))
    }

    /// Whether a file is gone or ends too early, as one does that was being written.
    fn is_cut_off(&self, look: &StepState) -> Result<bool, GitError> {
        let file = self.root().join(&look.step.path);
        let (Some(to), Ok(found)) = (&look.step.to, file.symlink_metadata()) else {
            return Ok(look.stamp.is_none());
        };
        if !found.is_file() || !to.is_file() {
            return Ok(false);
        }
        let mut path = OsString::from("--path=");
        path.push(&look.step.path);
        let call = self.call().args(["cat-file", "--filters"]).arg(path).arg(&to.oid);
        let whole = call.read_only().done()?.stdout;
        if found.len() > whole.len() as u64 {
            return Ok(false);
        }
        let now = std::fs::read(&file).map_err(|error| GitError::io(&file, &error))?;
        Ok(whole.starts_with(&now))
    }

    /// Takes back what a landing that was cut off has written, so that git finds its files as it
    /// left them. What is removed here is in the commit that lands.
    fn roll_back(&self, half: &[&StepState]) -> Result<(), GitError> {
        let (added, known): (Vec<&StepState>, Vec<&StepState>) =
            half.iter().partition(|look| look.step.from.is_none());
        for look in added {
            remove_if_there(&self.root().join(&look.step.path))?;
        }
        if known.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["checkout-index", "-f", "-q", "-u", "-z", "--stdin"]);
        call.stdin(nul_list(paths_of(known))).done().map(|_| ())
    }
}

/// The files that git names when it refuses: each on a line of its own, after a tab.
fn listed(said: &[u8]) -> Vec<PathBuf> {
    said.split(|b| *b == b'\n').filter_map(|line| line.strip_prefix(b"\t")).map(path_of).collect()
}
