//! Locks for work that only one process may do at a time: a lock of the operating system, which
//! ends with its holder, and a note in the file that says who holds it.

use crate::folder::{canonical, private_folder};
use crate::{ProcessId, ProjectKey, StateFolder, StoreError};
use backstop_core::{Name, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// How many bytes of a note are read.
const NOTE_BYTES_MAX: u64 = 4096;

/// The holder of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// Its start time, as [`ProcessId`] has it; 0 in a note of an older version.
    #[serde(default)]
    pub start: u64,
    /// The run, once it has one.
    pub run: Option<RunId>,
    /// The time at which the lock was taken.
    pub since: Timestamp,
}

/// A lock, held until it is dropped or its process ends.
#[derive(Debug)]
pub struct Hold {
    file: File,
    path: PathBuf,
}

/// The result of trying to take a lock.
#[derive(Debug)]
pub enum Held {
    /// The lock was taken.
    Ours(Hold),
    /// Another process holds it; which one, if the note can be read.
    By(Option<Holder>),
}

impl StateFolder {
    /// Takes a lock in a project, if it is free.
    pub fn hold(&self, project_root: &Path, name: &Name, process: ProcessId) -> Result<Held, StoreError> {
        self.hold_named(format!("{}.{name}", ProjectKey::of(&canonical(project_root)?).as_str()), process)
    }

    /// Takes a lock of the user, which belongs to no project, if it is free.
    pub fn hold_user(&self, name: &Name, process: ProcessId) -> Result<Held, StoreError> {
        // Cannot clash with a project's lock: the name of that one contains a project key before
        // the dot.
        self.hold_named(format!("user.{name}"), process)
    }

    fn hold_named(&self, name: String, process: ProcessId) -> Result<Held, StoreError> {
        let folder = self.root().join("locks");
        private_folder(&folder, false)?;
        let path = folder.join(name);
        let mut file = self.files().open_private(&path).map_err(StoreError::file)?;
        match file.try_lock() {
            Ok(()) => {
                let mut hold = Hold { file, path };
                hold.note(&Holder {
                    pid: process.pid,
                    start: process.start,
                    run: None,
                    since: (self.clock)(),
                })?;
                Ok(Held::Ours(hold))
            }
            Err(TryLockError::WouldBlock) => {
                let mut note = String::new();
                let _ = (&mut file).take(NOTE_BYTES_MAX).read_to_string(&mut note);
                Ok(Held::By(serde_json::from_str(&note).ok()))
            }
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path, &error)),
        }
    }
}

impl Hold {
    /// Writes who holds the lock.
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
        let holder = Holder {
            pid: 1,
            start: 1,
            run: Some("r-7f3a".parse().unwrap()),
            since: Timestamp::from_millis(7),
        };
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
