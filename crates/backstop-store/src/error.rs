//! The errors of the store: what happened, where, and what to type next.
//!
//! SQLite's errors are translated here and nowhere else, so that a full disk, a read-only folder
//! and a damaged file are each an error of their own.

use backstop_core::{ErrorKind, HintedError, RunId};
use backstop_files::{FileError, FileKind};
use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::path::{Path, PathBuf};

/// An error of the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process wrote to this run since it was read. Nothing was written.
    #[error(
        "{run} was written by another process: expected version {expected}, found {found}; nothing was written"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The version that this writer expected.
        expected: u64,
        /// The version in the database.
        found: u64,
    },
    /// The run does not exist.
    #[error("there is no run {run} in {}", file.display())]
    NoSuchRun {
        /// The run.
        run: RunId,
        /// The database that was searched.
        file: PathBuf,
    },
    /// Another process held the database for too long.
    #[error("{} is locked by another process", file.display())]
    Busy {
        /// The database.
        file: PathBuf,
    },
    /// The database is damaged, or is not one of ours. It is left as it is.
    #[error("{} is damaged or not a Backstop database: {why}", file.display())]
    Corrupt {
        /// The database.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer version of Backstop wrote it.
    #[error("{} has format {found}, and this Backstop knows formats up to {known}", file.display())]
    Newer {
        /// The database.
        file: PathBuf,
        /// The format version of the file.
        found: u32,
        /// The newest format version that this build knows.
        known: u32,
    },
    /// The disk is full.
    #[error("no space is left for {}", file.display())]
    Full {
        /// The file that could not be written.
        file: PathBuf,
    },
    /// The file cannot be written.
    #[error("{} cannot be written: {why}", file.display())]
    ReadOnly {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The system reported an error.
    #[error("cannot use {}: {why}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The state folder, or a file in it, is a symbolic link.
    #[error("{} is a symbolic link, and what it leads to could be exchanged", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// The state folder belongs to another user.
    #[error("{} belongs to user {owner}, and this is user {user}", path.display())]
    NotOwned {
        /// The folder.
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// The state folder is not a folder.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A record cannot be serialised.
    #[error("cannot record {what} in {}: {why}", file.display())]
    Unrecordable {
        /// What was to be recorded.
        what: String,
        /// The database.
        file: PathBuf,
        /// Why not.
        why: String,
    },
}

impl StoreError {
    /// What to type or do next, for the `hint:` line.
    pub fn hint(&self) -> String {
        match self {
            StoreError::Conflict { run, .. } => {
                format!("see what happened with `backstop explain {run}`, then repeat the command")
            }
            StoreError::NoSuchRun { .. } => "list the runs with `backstop runs`".to_owned(),
            StoreError::Busy { .. } => {
                "other backstop processes are at work; once they have finished, the store is used again"
                    .to_owned()
            }
            StoreError::Corrupt { .. } => {
                "put it aside with `backstop clean --quarantine`; nothing is deleted".to_owned()
            }
            StoreError::Newer { .. } => "update Backstop to the version that wrote it, or newer".to_owned(),
            StoreError::Full { .. } => {
                "free some space, for example with `backstop clean`; the store is used again by itself"
                    .to_owned()
            }
            StoreError::ReadOnly { .. } | StoreError::Io { .. } => {
                "check the state folder with `backstop doctor`, or choose another with BACKSTOP_STATE_DIR"
                    .to_owned()
            }
            StoreError::Symlink { .. } | StoreError::NotAFolder { .. } => {
                "name the folder itself with BACKSTOP_STATE_DIR".to_owned()
            }
            StoreError::NotOwned { .. } => {
                "choose a folder of your own with BACKSTOP_STATE_DIR, or run as its owner".to_owned()
            }
            StoreError::Unrecordable { .. } => {
                "please report this with the output of `backstop doctor`".to_owned()
            }
        }
    }

    /// Translates a system error about a file.
    /// A file of the state folder that was refused, or could not be used.
    pub(crate) fn file(error: FileError) -> Self {
        match error {
            FileError::Refused { path, kind: FileKind::Link } => StoreError::Symlink { path },
            FileError::NotAFolder { path } => StoreError::NotAFolder { path },
            FileError::Refused { ref path, .. }
            | FileError::Outside { ref path }
            | FileError::TooLarge { ref path, .. } => {
                StoreError::Io { file: path.clone(), why: error.to_string() }
            }
            FileError::Io { path, source } => Self::io(&path, &source),
        }
    }

    pub(crate) fn io(file: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let (file, why) = (file.to_owned(), error.to_string());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { file },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => StoreError::ReadOnly { file, why },
            _ => StoreError::Io { file, why },
        }
    }

    /// Translates an SQLite error about a database.
    pub(crate) fn sqlite(file: &Path, error: &rusqlite::Error) -> Self {
        let path = file.to_owned();
        let rusqlite::Error::SqliteFailure(code, message) = error else {
            // A value of the wrong type, or a missing row: the file is not what we wrote.
            return StoreError::Corrupt { file: path, why: error.to_string() };
        };
        let why = message.clone().unwrap_or_else(|| code.to_string());
        match code.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { file: path },
            ErrorCode::DiskFull => StoreError::Full { file: path },
            // None of our statements is wrong in itself, so the tables are not ours.
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::Unknown
            | ErrorCode::TypeMismatch
            | ErrorCode::ConstraintViolation
            | ErrorCode::SchemaChanged => StoreError::Corrupt { file: path, why },
            ErrorCode::CannotOpen if code.extended_code == ffi::SQLITE_CANTOPEN_SYMLINK => {
                StoreError::Symlink { path }
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly { file: path, why },
            ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_CORRUPTFS => {
                StoreError::Corrupt { file: path, why }
            }
            ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Self::of_the_file_system(path, why),
            _ => StoreError::Io { file: path, why },
        }
    }

    /// SQLite reports little when a file beside the database cannot be created or extended: ask the
    /// file system.
    fn of_the_file_system(file: PathBuf, why: String) -> Self {
        use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
        let Some(parent) = file.parent() else { return StoreError::Io { file, why } };
        match statvfs(parent) {
            Ok(found) if found.f_flag.contains(StatVfsMountFlags::RDONLY) => {
                StoreError::ReadOnly { file, why }
            }
            Ok(found) if found.f_bavail == 0 => StoreError::Full { file },
            _ if access(parent, Access::WRITE_OK).is_err() => StoreError::ReadOnly { file, why },
            _ => StoreError::Io { file, why },
        }
    }
}

/// An error inside a transaction: SQLite's, where the file is not known yet, or our own.
#[derive(Debug)]
pub(crate) enum TransactionError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl TransactionError {
    /// The error with the path of the database.
    pub(crate) fn at(self, file: &Path) -> StoreError {
        match self {
            TransactionError::Sqlite(error) => StoreError::sqlite(file, &error),
            TransactionError::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        TransactionError::Sqlite(error)
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        TransactionError::Store(error)
    }
}

impl HintedError for StoreError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Failed
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(extended: i32) -> StoreError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None);
        StoreError::sqlite(Path::new("/nowhere/at/all/x.db"), &error)
    }

    #[test]
    fn each_trouble_of_sqlite_has_an_error_of_its_own() {
        assert!(matches!(sqlite(ffi::SQLITE_FULL), StoreError::Full { .. }));
        assert!(matches!(sqlite(ffi::SQLITE_READONLY_DIRECTORY), StoreError::ReadOnly { .. }));
        assert!(matches!(
            sqlite(ffi::SQLITE_IOERR_WRITE),
            StoreError::ReadOnly { .. } | StoreError::Io { .. }
        ));
        assert!(matches!(sqlite(ffi::SQLITE_BUSY_SNAPSHOT), StoreError::Busy { .. }));
        assert!(matches!(sqlite(ffi::SQLITE_CORRUPT_INDEX), StoreError::Corrupt { .. }));
        assert!(matches!(sqlite(ffi::SQLITE_NOTADB), StoreError::Corrupt { .. }));
        assert!(matches!(sqlite(ffi::SQLITE_CANTOPEN_SYMLINK), StoreError::Symlink { .. }));
        assert!(matches!(sqlite(ffi::SQLITE_NOMEM), StoreError::Io { .. }));
    }

    #[test]
    fn every_error_names_its_place_and_what_to_do() {
        let file = PathBuf::from("/s/x.db");
        let run: RunId = "r-7f3a".parse().unwrap();
        let why = "because".to_owned();
        let all = [
            StoreError::Conflict { run, expected: 1, found: 2 },
            StoreError::NoSuchRun { run, file: file.clone() },
            StoreError::Busy { file: file.clone() },
            StoreError::Corrupt { file: file.clone(), why: why.clone() },
            StoreError::Newer { file: file.clone(), found: 9, known: 1 },
            StoreError::Full { file: file.clone() },
            StoreError::ReadOnly { file: file.clone(), why: why.clone() },
            StoreError::Io { file: file.clone(), why: why.clone() },
            StoreError::Symlink { path: file.clone() },
            StoreError::NotOwned { path: file.clone(), owner: 1, user: 2 },
            StoreError::NotAFolder { path: file.clone() },
            StoreError::Unrecordable { what: "x".into(), file, why },
        ];
        for error in all {
            let text = error.to_string();
            assert!(text.contains("/s/x.db") || text.contains("r-7f3a"), "{text}");
            assert!(!error.hint().is_empty());
        }
    }
}
