//! The database of the user: what belongs to no project.
//!
//! Which project files are trusted, and which nested runs have retried already, so that retries do
//! not multiply. It must not hold anything of one project's runs.

use crate::db::Db;
use crate::summary::{parsed, worded};
use crate::{Clock, StateFolder, StoreError, schema};
use backstop_core::{Reason, RunId, Timestamp};
use rusqlite::{OptionalExtension, params};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the note of a nested run is kept: by then its parent has ended.
const NESTED_KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// The database of the user.
pub struct UserStore {
    db: Db,
    clock: Clock,
}

impl std::fmt::Debug for UserStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserStore").field("file", &self.db.file()).finish_non_exhaustive()
    }
}

/// A trusted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The file.
    pub path: PathBuf,
    /// The hashes that were trusted: of the file and of what it names, a line each.
    pub hashes: String,
    /// When it was trusted.
    pub at: Timestamp,
}

/// A nested run that retried already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nested {
    /// The nested run.
    pub run: RunId,
    /// How many attempts it made.
    pub attempts: u32,
    /// The reason of its last fault.
    pub reason: Reason,
}

impl UserStore {
    /// Opens the user's database; creates it if it is missing.
    pub fn open(folder: &StateFolder) -> Result<Self, StoreError> {
        let db = Db::open(folder, folder.user_file(), &schema::USER, &|_| Ok(()))?;
        Ok(Self { db, clock: Clock::clone(&folder.clock) })
    }

    /// Opens the user's database if it exists.
    pub fn open_existing(folder: &StateFolder) -> Result<Option<Self>, StoreError> {
        let db = Db::open_existing(folder, folder.user_file(), &schema::USER, &|_| Ok(()))?;
        Ok(db.map(|db| Self { db, clock: Clock::clone(&folder.clock) }))
    }

    /// The path of the database.
    pub fn file(&self) -> &Path {
        self.db.file()
    }

    /// Reads the whole database and reports damage.
    pub fn check(&self) -> Result<(), StoreError> {
        self.db.check()
    }

    /// Trusts a file with the current hashes of it and of what it names.
    pub fn trust(&self, path: &Path, hashes: &str) -> Result<(), StoreError> {
        let at = (self.clock)().as_millis();
        self.db.write_one(None, |conn| {
            conn.execute(
                "INSERT INTO trust (path, hash, at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, at = excluded.at",
                params![path.as_os_str().as_bytes(), hashes, at],
            )
        })?;
        Ok(())
    }

    /// The hashes with which a file was last trusted; `None` if it never was.
    pub fn trusted_hashes(&self, path: &Path) -> Result<Option<String>, StoreError> {
        self.db.read(|conn| {
            let sql = "SELECT hash FROM trust WHERE path = ?1";
            let found = conn.query_row(sql, params![path.as_os_str().as_bytes()], |row| row.get(0));
            Ok(found.optional()?)
        })
    }

    /// Whether a file is trusted with these hashes.
    pub fn is_trusted(&self, path: &Path, hashes: &str) -> Result<bool, StoreError> {
        Ok(self.trusted_hashes(path)?.is_some_and(|trusted| trusted == hashes))
    }

    /// Revokes the trust in a file; returns whether it was trusted.
    pub fn revoke(&self, path: &Path) -> Result<bool, StoreError> {
        let path = path.as_os_str().as_bytes();
        self.db.write_one(None, |conn| {
            Ok(conn.execute("DELETE FROM trust WHERE path = ?1", params![path])? == 1)
        })
    }

    /// All trusted files, by path.
    pub fn trusted(&self) -> Result<Vec<Trusted>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare("SELECT path, hash, at FROM trust ORDER BY path")?;
            let rows = statement.query_map([], |row| {
                let path: Vec<u8> = row.get(0)?;
                Ok(Trusted {
                    path: PathBuf::from(OsStr::from_bytes(&path)),
                    hashes: row.get(1)?,
                    at: Timestamp::from_millis(row.get(2)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Notes that `run`, started by `parent`, made this many attempts. Removes old notes.
    pub fn note_nested(
        &self,
        parent: RunId,
        run: RunId,
        attempts: u32,
        reason: Reason,
    ) -> Result<(), StoreError> {
        let now = (self.clock)();
        let keep = i64::try_from(NESTED_KEEP.as_millis()).unwrap_or(i64::MAX);
        self.db.write(None, false, |tx| {
            // After a clock jump there are notes in the past and in the future.
            let (from, to) = (now.as_millis().saturating_sub(keep), now.as_millis().saturating_add(keep));
            tx.execute("DELETE FROM nested WHERE at NOT BETWEEN ?1 AND ?2", [from, to])?;
            tx.execute(
                "INSERT INTO nested (parent, run, attempts, reason, at) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT (parent, run) DO UPDATE SET attempts = max(attempts, excluded.attempts), \
                 reason = excluded.reason, at = excluded.at",
                params![parent.to_string(), run.to_string(), attempts, reason.code(), now.as_millis()],
            )?;
            Ok(())
        })
    }

    /// The nested run of `parent` that made the most attempts since then, if there is one.
    pub fn nested(&self, parent: RunId, since: Timestamp) -> Result<Option<Nested>, StoreError> {
        self.db.read(|conn| {
            let found = conn.query_row(
                "SELECT run, attempts, reason FROM nested WHERE parent = ?1 AND at >= ?2 ORDER BY attempts DESC, run LIMIT 1",
                params![parent.to_string(), since.as_millis()],
                |row| {
                    let reason = worded(row, 2, Reason::from_code)?;
                    Ok(Nested { run: parsed(row, 0)?, attempts: row.get(1)?, reason })
                },
            );
            Ok(found.optional()?)
        })
    }
}
