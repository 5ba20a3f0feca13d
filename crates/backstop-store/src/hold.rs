//! Who works on something that only one may work on: a lock of the system, which ends with its holder, and a note that says
//! who that is.

use crate::folder::{canonical, no_follow, private_folder};
use crate::{ProcessId, ProjectKey, StateFolder, StoreError};
use backstop_core::{Name, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of a note is read.
const NOTE_BYTES_MAX: u64 = 4096;

/// Who holds something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its run, once it has one.
    pub run: Option<RunId>,
    /// Since when.
    pub since: Timestamp,
}

/// Held until it is dropped, or its process ends.
#[derive(Debug)]
pub struct Hold {
    file: File,
    path: PathBuf,
}

/// What came of asking.
#[derive(Debug)]
pub enum Held {
    /// It is ours.
    Ours(Hold),
    /// Somebody else has it; who, where the note can be read.
    By(Option<Holder>),
}

impl StateFolder {
    /// Takes the lock of this name in a project, if nobody has it.
    pub fn hold(&self, project_root: &Path, name: &Name, process: ProcessId) -> Result<Held, StoreError> {
        self.hold_named(format!("{}.{name}", ProjectKey::of(&canonical(project_root)?).as_str()), process)
    }

    /// Takes the user's own lock of this name, if nobody has it. It belongs to no project.
    pub fn hold_user(&self, name: &Name, process: ProcessId) -> Result<Held, StoreError> {
        // A project's lock has a dot in its name, and a checked name before it.
        self.hold_named(format!("user.{name}"), process)
    }

    fn hold_named(&self, name: String, process: ProcessId) -> Result<Held, StoreError> {
        let folder = self.root().join("locks");
        private_folder(&folder, false)?;
        let path = folder.join(name);
        let io = |error: &std::io::Error| StoreError::io(&path, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(no_follow())
            .open(&path)
            .map_err(|error| io(&error))?;
        match file.try_lock() {
            Ok(()) => {
                let mut hold = Hold { file, path };
                hold.note(&Holder { pid: process.pid, run: None, since: (self.clock)() })?;
                Ok(Held::Ours(hold))
            }
            Err(TryLockError::WouldBlock) => {
                let mut note = String::new();
                let _ = (&mut file).take(NOTE_BYTES_MAX).read_to_string(&mut note);
                Ok(Held::By(serde_json::from_str(&note).ok()))
            }
            Err(TryLockError::Error(error)) => Err(io(&error)),
        }
    }
}

impl Hold {
    /// Says who has it.
    pub fn note(&mut self, holder: &Holder) -> Result<(), StoreError> {
        let text = serde_json::to_string(holder).unwrap_or_default();
        let write = |file: &mut File| -> std::io::Result<()> {
            file.rewind()?;
            file.set_len(0)?;
            file.write_all(text.as_bytes())
        };
        write(&mut self.file).map_err(|error| StoreError::io(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn one_at_a_time_and_the_second_is_told_who() {
        let temp = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder = StateFolder::open(&temp.path().join("s"), clock, Arc::default()).unwrap();
        let name: Name = "plan-1".parse().unwrap();
        let ask = |pid| folder.hold(temp.path(), &name, ProcessId { pid, start: 1 }).unwrap();
        let Held::Ours(mut first) = ask(1) else { panic!("nobody had it") };
        let holder =
            Holder { pid: 1, run: Some("r-7f3a".parse().unwrap()), since: Timestamp::from_millis(7) };
        first.note(&holder).unwrap();
        assert!(matches!(ask(2), Held::By(Some(found)) if found == holder));
        drop(first);
        assert!(matches!(ask(2), Held::Ours(_)));
        let Held::Ours(_sender) = folder.hold_user(&name, ProcessId { pid: 1, start: 1 }).unwrap() else {
            panic!("a project's lock is another one")
        };
        assert!(matches!(folder.hold_user(&name, ProcessId { pid: 2, start: 1 }).unwrap(), Held::By(_)));
    }
}
