//! What the user's files are now, compared with what they were and what they are to be.
//!
//! A file counts as unchanged if its bytes are the blob's, or if git would stage it as the blob. A
//! path that leads through a link is never followed. Nothing here changes anything.

use super::changes::{Entry, Step};
use super::state::{raw_hashes, staged_hashes};
use super::{GitError, Repo, Sha};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a path is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// As it was.
    From,
    /// As it is to be, already.
    To,
    /// Something else: the user's.
    Other,
    /// A nested repository, whose files are not ours.
    Nested,
}

/// A step, and how far it has been taken.
#[derive(Debug)]
pub(crate) struct StepState {
    pub(crate) step: Step,
    pub(crate) now: Now,
    pub(crate) stamp: Option<Stamp>,
}

/// What tells that a file was written meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            size: found.size(),
            mode: found.mode(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// What is at a path now.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().as_ref().map(Self::of)
    }
}

/// What is at a path.
enum AtPath {
    Nothing,
    /// A folder with nothing in it but what is to be deleted.
    Emptied,
    File(Metadata),
    Link(Vec<u8>),
    /// Something for which there is no file at this path: a folder with other things in it, or
    /// something else than a folder on the way. It is gone, if it was to go.
    Instead,
    Foreign,
}

/// What is known about all steps.
struct Looked<'a> {
    root: &'a Path,
    deleted: HashSet<&'a OsStr>,
    /// Whether the file system knows which files are executable.
    modes: bool,
    hashes: HashMap<&'a OsStr, (Sha, Sha)>,
    /// Paths that the user's sparse checkout leaves out.
    left_out: HashSet<OsString>,
}

impl Repo {
    /// How far steps have been taken in the user's working tree.
    pub(crate) fn look(&self, steps: Vec<Step>) -> Result<Vec<StepState>, GitError> {
        let deleted =
            steps.iter().filter(|step| step.to.is_none()).map(|step| step.path.as_os_str()).collect();
        let left_out = self.left_out(&steps)?;
        let mut looked = Looked { root: self.root(), deleted, modes: true, hashes: HashMap::new(), left_out };
        let found: Vec<AtPath> = steps.iter().map(|step| looked.at_path(&step.path)).collect();
        let files = steps.iter().zip(&found).filter(|(_, found)| matches!(found, AtPath::File(_)));
        let files: Vec<&OsStr> = files.map(|(step, _)| step.path.as_os_str()).collect();
        if !files.is_empty() {
            let config = self.call().args(["config", "--type=bool", "--get", "core.fileMode"]).answer()?;
            looked.modes = config.line() != b"false";
        }
        let pairs =
            raw_hashes(|| self.call(), &files)?.into_iter().zip(staged_hashes(|| self.call(), &files)?);
        looked.hashes = files.iter().copied().zip(pairs).collect();
        let mut nows = Vec::with_capacity(steps.len());
        for (step, found) in steps.iter().zip(&found) {
            nows.push((self.now(&looked, step, found)?, Stamp::at(&self.root().join(&step.path))));
        }
        Ok(steps.into_iter().zip(nows).map(|(step, (now, stamp))| StepState { step, now, stamp }).collect())
    }

    /// The paths of these steps that a sparse checkout leaves out: that they are not there is no
    /// change of the user's.
    fn left_out(&self, steps: &[Step]) -> Result<HashSet<OsString>, GitError> {
        let is_missing =
            |step: &&Step| step.from.is_some() && self.root().join(&step.path).symlink_metadata().is_err();
        let names: Vec<&OsStr> = steps.iter().filter(is_missing).map(|step| step.path.as_os_str()).collect();
        if names.is_empty() {
            return Ok(HashSet::new());
        }
        let config = self.call().args(["config", "--type=bool", "--get", "core.sparseCheckout"]).answer()?;
        if config.line() != b"true" {
            return Ok(HashSet::new());
        }
        // All of them are listed: there is no list of names on standard input here.
        let listed = self.call().args(["ls-files", "-t", "-z"]).read_only().done()?;
        let skipped: HashSet<&[u8]> = listed.parts().filter_map(|part| part.strip_prefix(b"S ")).collect();
        Ok(names.into_iter().filter(|name| skipped.contains(name.as_bytes())).map(OsStr::to_owned).collect())
    }

    fn now(&self, looked: &Looked<'_>, step: &Step, found: &AtPath) -> Result<Now, GitError> {
        let nested = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_link);
        if nested(&step.from) || nested(&step.to) {
            return Ok(Now::Nested);
        }
        if looked.left_out.contains(&step.path) && step.from.is_some() {
            return Ok(Now::From);
        }
        for (entry, now) in [(&step.to, Now::To), (&step.from, Now::From)] {
            let gone = matches!(found, AtPath::Instead) && now == Now::To && entry.is_none();
            if gone || self.is(looked, &step.path, found, entry.as_ref())? {
                return Ok(now);
            }
        }
        Ok(Now::Other)
    }

    fn is(
        &self,
        looked: &Looked<'_>,
        path: &OsStr,
        found: &AtPath,
        entry: Option<&Entry>,
    ) -> Result<bool, GitError> {
        Ok(match (found, entry) {
            (AtPath::Nothing | AtPath::Emptied, None) => true,
            (AtPath::File(found), Some(entry)) if entry.is_file() => {
                let mode = !looked.modes || (found.mode() & 0o100 != 0) == entry.is_executable();
                mode && looked.hashes.get(path).is_some_and(|(a, b)| *a == entry.oid || *b == entry.oid)
            }
            (AtPath::Link(target), Some(entry)) if entry.is_symlink() => {
                let blob = self.call().args(["cat-file", "blob"]).arg(&entry.oid).read_only().done()?;
                blob.stdout == *target
            }
            _ => false,
        })
    }
}

impl Looked<'_> {
    fn at_path(&self, path: &OsStr) -> AtPath {
        let path = Path::new(path);
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            match self.root.join(parent).symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Err(_) => {}
                // A file that makes room for a folder.
                Ok(_) if self.deleted.contains(parent.as_os_str()) => return AtPath::Nothing,
                Ok(_) => return AtPath::Instead,
            }
        }
        let full = self.root.join(path);
        match full.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => AtPath::Nothing,
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => AtPath::Nothing,
            Ok(found) if found.is_file() => AtPath::File(found),
            Ok(found) if found.is_symlink() => {
                let target = std::fs::read_link(&full).map(|to| to.as_os_str().as_bytes().to_vec());
                target.map_or(AtPath::Foreign, AtPath::Link)
            }
            Ok(found) if found.is_dir() && self.only_deleted(path) => AtPath::Emptied,
            Ok(found) if found.is_dir() => AtPath::Instead,
            _ => AtPath::Foreign,
        }
    }

    /// Whether a folder has nothing in it but files that are to be deleted.
    fn only_deleted(&self, folder: &Path) -> bool {
        let mut rest: Vec<PathBuf> = vec![folder.to_owned()];
        while let Some(folder) = rest.pop() {
            let Ok(entries) = std::fs::read_dir(self.root.join(&folder)) else { return false };
            for entry in entries {
                let Ok(entry) = entry else { return false };
                let path = folder.join(entry.file_name());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => rest.push(path),
                    _ if self.deleted.contains(path.as_os_str()) => {}
                    _ => return false,
                }
            }
        }
        true
    }
}

/// The paths of some looks.
pub(crate) fn paths_of<'a>(looks: impl IntoIterator<Item = &'a StepState>) -> Vec<OsString> {
    looks.into_iter().map(|look| look.step.path.clone()).collect()
}
