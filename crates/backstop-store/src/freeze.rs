//! A frozen project: no new work until a person unfreezes it.
//!
//! A small file beside the project's database, so that every command can check it without opening a
//! database, and so that it can be removed by hand. A file that cannot be read freezes the project
//! too: its existence is what counts, because on a full disk its content may not fit.

use crate::folder::canonical;
use crate::{ProjectKey, StateFolder, StoreError};
use backstop_core::{Reason, RunId, SafeText, Timestamp};
use backstop_files::FileError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a project is frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// The version of this file.
    pub schema: u32,
    /// The reason of the fault.
    pub reason: Reason,
    /// The cause, in words.
    pub why: SafeText,
    /// The run that failed, if there is one.
    pub run: Option<RunId>,
    /// The time of the freeze.
    pub at: Timestamp,
}

/// The version of the file.
const SCHEMA: u32 = 1;
/// How many bytes of the file are read.
const BYTES_MAX: u64 = 64 << 10;

impl Freeze {
    /// A freeze at time `at`.
    pub fn new(reason: Reason, why: SafeText, run: Option<RunId>, at: Timestamp) -> Self {
        Self { schema: SCHEMA, reason, why, run, at }
    }
}

impl StateFolder {
    /// Freezes a project; returns whether it was not frozen yet. A project that is frozen already
    /// keeps its first cause.
    pub fn freeze(&self, project_root: &Path, freeze: &Freeze) -> Result<bool, StoreError> {
        let file = self.frozen_file(project_root)?;
        if self.frozen(project_root)?.is_some() {
            return Ok(false);
        }
        self.make_projects_folder()?;
        let why = SafeText::new(self.redactor.redact(freeze.why.raw()).into_owned());
        let text = serde_json::to_string(&Freeze { why, ..freeze.clone() }).unwrap_or_default();
        make(&file, text.as_bytes()).map_err(|error| StoreError::io(&file, &error))
    }

    /// Why a project is frozen; `None` if it is not.
    pub fn frozen(&self, project_root: &Path) -> Result<Option<Freeze>, StoreError> {
        let file = self.frozen_file(project_root)?;
        let there = match file.symlink_metadata() {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&file, &error)),
        };
        let invalid = |why: String| {
            let why = format!("{} cannot be read: {why}", file.display());
            Freeze::new(Reason::StateInvalid, SafeText::new(why), None, (self.clock)())
        };
        match self.files().read(&file, BYTES_MAX) {
            Ok(Some(text)) if text.is_empty() => {
                let why = SafeText::new("no space was left to write down more");
                let at = Timestamp::from_millis(there.mtime().saturating_mul(1000));
                Ok(Some(Freeze::new(Reason::DiskFull, why, None, at)))
            }
            Ok(Some(text)) => {
                Ok(Some(serde_json::from_slice(&text).unwrap_or_else(|error| invalid(error.to_string()))))
            }
            Ok(None) => Ok(None),
            Err(FileError::Io { path, source }) => Err(StoreError::io(&path, &source)),
            Err(refused) => Ok(Some(invalid(refused.to_string()))),
        }
    }

    /// Unfreezes a project; returns why it was frozen, if it was.
    pub fn unfreeze(&self, project_root: &Path) -> Result<Option<Freeze>, StoreError> {
        let frozen = self.frozen(project_root)?;
        if frozen.is_some() {
            let file = self.frozen_file(project_root)?;
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::io(&file, &error));
                }
                _ => {}
            }
        }
        Ok(frozen)
    }

    fn frozen_file(&self, project_root: &Path) -> Result<PathBuf, StoreError> {
        let key = ProjectKey::of(&canonical(project_root)?);
        Ok(self.project_file(&key).with_extension("frozen"))
    }
}

/// Creates the file; returns whether it did not exist. Of many processes at once, one creates it.
/// Where there is no space for its content, it stays empty.
fn make(file: &Path, text: &[u8]) -> std::io::Result<bool> {
    let mut made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(made) => made,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = made.write_all(text).and_then(|()| made.sync_all());
    match written.and_then(|()| File::open(folder)?.sync_all()) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            made.set_len(0).map(|()| true)
        }
        Err(error) => {
            let _ = std::fs::remove_file(file);
            Err(error)
        }
        Ok(()) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Redactor;
    use std::sync::Arc;

    #[test]
    fn a_project_is_frozen_for_the_first_reason_until_somebody_says_so() {
        let scratch = tempfile::tempdir().unwrap();
        let (state, project) = (scratch.path().join("state"), scratch.path().join("project"));
        std::fs::create_dir(&project).unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder = StateFolder::open(&state, clock, Arc::new(Redactor::default())).unwrap();
        assert_eq!(folder.frozen(&project).unwrap(), None);
        assert_eq!(folder.unfreeze(&project).unwrap(), None);
        let freeze = |why: &str| {
            Freeze::new(Reason::DiskFull, why.into(), "r-7f3a".parse().ok(), Timestamp::from_millis(1))
        };
        assert!(
            folder.freeze(&project, &freeze("3 MB left; ghp_012345678901234567890123456789012345")).unwrap()
        );
        assert!(!folder.freeze(&project, &freeze("another")).unwrap());
        let frozen = folder.frozen(&project).unwrap().unwrap();
        assert!(
            frozen.why.raw().starts_with("3 MB left") && !frozen.why.raw().contains("ghp_0"),
            "{frozen:?}"
        );
        assert_eq!(folder.frozen(scratch.path()).unwrap(), None, "another project is not frozen");
        assert_eq!(folder.unfreeze(&project).unwrap(), Some(frozen));
        assert_eq!(folder.frozen(&project).unwrap(), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_freezes_all_the_same() {
        let scratch = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder =
            StateFolder::open(&scratch.path().join("s"), clock, Arc::new(Redactor::default())).unwrap();
        let freeze = Freeze::new(Reason::DiskFull, "x".into(), None, Timestamp::from_millis(1));
        folder.freeze(scratch.path(), &freeze).unwrap();
        std::fs::write(folder.frozen_file(scratch.path()).unwrap(), "{").unwrap();
        let frozen = folder.frozen(scratch.path()).unwrap().unwrap();
        assert_eq!(frozen.reason, Reason::StateInvalid);
        assert!(folder.unfreeze(scratch.path()).unwrap().is_some());
    }

    #[test]
    fn whatever_is_in_its_place_freezes_and_an_empty_file_is_a_full_disk() {
        let scratch = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder =
            StateFolder::open(&scratch.path().join("s"), clock, Arc::new(Redactor::default())).unwrap();
        let file = folder.frozen_file(scratch.path()).unwrap();
        let freeze = Freeze::new(Reason::DataLoss, "x".into(), None, Timestamp::from_millis(1));
        assert!(folder.freeze(scratch.path(), &freeze).unwrap());
        std::fs::write(&file, "").unwrap();
        assert_eq!(folder.frozen(scratch.path()).unwrap().unwrap().reason, Reason::DiskFull);
        folder.unfreeze(scratch.path()).unwrap();
        std::os::unix::fs::symlink("/nowhere", &file).unwrap();
        assert_eq!(folder.frozen(scratch.path()).unwrap().unwrap().reason, Reason::StateInvalid);
        assert!(!folder.freeze(scratch.path(), &freeze).unwrap());
        folder.unfreeze(scratch.path()).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(folder.frozen(scratch.path()).unwrap().unwrap().reason, Reason::StateInvalid);
        assert!(folder.unfreeze(scratch.path()).is_err(), "a folder is not ours to remove");
    }

    #[test]
    fn of_many_who_freeze_at_once_one_does() {
        let scratch = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder =
            StateFolder::open(&scratch.path().join("s"), clock, Arc::new(Redactor::default())).unwrap();
        let freeze = Freeze::new(Reason::DiskFull, "x".into(), None, Timestamp::from_millis(1));
        let froze = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..16).map(|_| scope.spawn(|| folder.freeze(scratch.path(), &freeze).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|froze| *froze).count()
        });
        assert_eq!(froze, 1);
    }
}
