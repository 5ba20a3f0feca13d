//! One open database: how it is opened, read and written.
//!
//! Every write is a single statement or a `BEGIN IMMEDIATE` transaction, with [`CommitPoint`]s
//! around it at which a test can end the process. Opening an existing database takes two
//! statements; anything more expensive happens once, when it is created or migrated.

use crate::error::TransactionError;
use crate::folder::{FileState, StateFolder, make_private_file, private_file};
use crate::migrate::{self, Format};
use crate::{StoreError, folder};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a writer waits for other writers: up to which try, and how long before each. About 10 s
/// in all. SQLite's own steps soon take as long as fifty commits.
const BUSY_STEPS: [(i32, Duration); 3] =
    [(20, Duration::from_micros(500)), (110, Duration::from_millis(1)), (2090, Duration::from_millis(5))];

/// A commit that makes the log longer than this moves it into the database, and waits for the disk.
/// Whoever opens the database alone reads the whole log first, about 1 µs a page; a run of one
/// attempt writes about 15 pages. SQLite's own 1000 made every short command half a millisecond
/// slower; this many makes one in twenty wait for the disk.
///
/// SQLite then leaves the log as long as it is, and begins it anew with the next commit of a
/// process that knows that it was moved. Where each process commits once, none does: the log would
/// grow for ever and be moved by each. So whoever leaves a log behind that was just moved empties
/// it.
const LOG_PAGES_MAX: u64 = 300;

/// The size of a page in the log, with its header.
const LOG_PAGE_BYTES: u64 = 4096 + 24;

/// A point around the commit of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPoint {
    /// Everything is written, nothing is committed yet.
    Before,
    /// It is committed; the caller has not been told yet.
    After,
}

/// A function that is called at each [`CommitPoint`].
pub type CommitHook = Arc<dyn Fn(CommitPoint) + Send + Sync>;

/// One open database.
pub(crate) struct Db {
    conn: Mutex<Connection>,
    file: PathBuf,
    log: PathBuf,
    /// The length of the log after the last commit, in bytes.
    log_bytes: AtomicU64,
    log_is_long: AtomicBool,
}

/// Writes the first rows of a new database, in the transaction that creates its tables.
pub(crate) type Initializer<'s> = &'s dyn Fn(&Connection) -> rusqlite::Result<()>;

impl Db {
    /// Opens a database; creates it if it is missing.
    pub(crate) fn open(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Initializer<'_>,
    ) -> Result<Self, StoreError> {
        if private_file(&file)? == FileState::Present {
            return Self::open_present(folder, file, format, seed);
        }
        if let Some(parent) = file.parent() {
            folder::private_folder(parent, false)?;
        }
        let _lock = folder.lock()?;
        make_private_file(&file)?;
        let conn = connect(&file)?;
        migrate::bring_up(&conn, &file, format, seed)?;
        Ok(Self::of(conn, file))
    }

    /// Opens a database if it exists.
    pub(crate) fn open_existing(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Initializer<'_>,
    ) -> Result<Option<Self>, StoreError> {
        match private_file(&file)? {
            FileState::Missing => Ok(None),
            FileState::Present => Self::open_present(folder, file, format, seed).map(Some),
        }
    }

    fn open_present(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Initializer<'_>,
    ) -> Result<Self, StoreError> {
        let conn = connect(&file)?;
        if migrate::version(&conn, &file)? != format.version() {
            let _lock = folder.lock()?;
            migrate::bring_up(&conn, &file, format, seed)?;
        }
        Ok(Self::of(conn, file))
    }

    fn of(conn: Connection, file: PathBuf) -> Self {
        Self {
            conn: Mutex::new(conn),
            log: folder::suffixed(&file, "-wal"),
            file,
            log_bytes: AtomicU64::new(0),
            log_is_long: AtomicBool::new(false),
        }
    }

    /// The path of the database.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere has rolled its transaction back, so the connection can still be used.
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        read(&self.conn()).map_err(|trouble| trouble.at(&self.file))
    }

    /// Writes with one statement, which commits by itself.
    pub(crate) fn write_one<T>(
        &self,
        hook: Option<&CommitHook>,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let conn = self.conn();
        reached(hook, CommitPoint::Before);
        let done = write(&conn).map_err(|error| StoreError::sqlite(&self.file, &error))?;
        reached(hook, CommitPoint::After);
        self.look_at_log();
        Ok(done)
    }

    /// Writes in one transaction; rolled back if `write` fails. A `durable` write is on the disk
    /// when this returns; any other survives the death of the process, but not a power cut.
    pub(crate) fn write<T>(
        &self,
        hook: Option<&CommitHook>,
        durable: bool,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        let mut conn = self.conn();
        let level = |conn: &Connection, level: &str| {
            let set = if durable { conn.pragma_update(None, "synchronous", level) } else { Ok(()) };
            set.map_err(|error| StoreError::sqlite(&self.file, &error))
        };
        level(&conn, "FULL")?;
        let transaction = || -> Result<T, TransactionError> {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = write(&tx)?;
            reached(hook, CommitPoint::Before);
            tx.commit()?;
            reached(hook, CommitPoint::After);
            Ok(done)
        };
        let done = transaction().map_err(|trouble| trouble.at(&self.file));
        level(&conn, "NORMAL")?;
        if done.is_ok() {
            self.look_at_log();
        }
        done
    }

    /// Moves the log into the database and empties it. Does not wait for readers.
    pub(crate) fn empty_log(&self) -> Result<(), StoreError> {
        match empty_log(&mut self.conn()).map_err(|error| StoreError::sqlite(&self.file, &error)) {
            Ok(()) | Err(StoreError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// After a commit: notes whether the log was longer than allowed, so that it is emptied on
    /// close.
    fn look_at_log(&self) {
        let bytes = self.log.metadata().map_or(0, |found| found.len());
        let grew = bytes > self.log_bytes.swap(bytes, Ordering::Relaxed);
        self.log_is_long.store(grew && bytes > LOG_PAGES_MAX * LOG_PAGE_BYTES, Ordering::Relaxed);
    }

    /// The size of the database and its log, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| path.metadata().map_or(0, |found| found.len());
        size(&self.file) + size(&self.log)
    }

    /// Reads every page and every index, and reports the first few errors.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let found: Vec<String> = self.read(|conn| {
            let mut statement = conn.prepare("PRAGMA integrity_check(5)")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        if found == ["ok"] {
            Ok(())
        } else {
            Err(StoreError::Corrupt { file: self.file.clone(), why: found.join("; ") })
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if *self.log_is_long.get_mut() {
            // The data is committed: if this fails, the next process tries again.
            let _ = empty_log(self.conn.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Moves the log into the database and empties it, unless a reader uses it.
fn empty_log(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(None::<fn(i32) -> bool>)?;
    let done = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    conn.busy_handler(Some(wait))?;
    done.map(|_| ())
}

/// Waits for the process that holds the database; returns whether to try again.
fn wait(asked: i32) -> bool {
    let step = BUSY_STEPS.iter().find(|(until, _)| asked < *until);
    if let Some((_, pause)) = step {
        std::thread::sleep(*pause);
    }
    step.is_some()
}

fn reached(hook: Option<&CommitHook>, point: CommitPoint) {
    if let Some(hook) = hook {
        hook(point);
    }
}

/// Opens an existing file. Follows no link and creates nothing.
fn connect(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let open = || -> rusqlite::Result<Connection> {
        let mut conn = Connection::open_with_flags(file, flags)?;
        conn.busy_handler(Some(wait))?;
        // Otherwise the last process to close would wait for the disk, and the user with it.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.execute_batch(&format!("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint={LOG_PAGES_MAX}"))?;
        Ok(conn)
    };
    open().map_err(|error| StoreError::sqlite(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Timestamp;

    #[test]
    fn the_log_stays_short_where_everybody_commits_once() {
        let format = Format { steps: &["CREATE TABLE a (x INTEGER, y TEXT)"] };
        let temp = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(7));
        let folder = StateFolder::open(&temp.path().join("s"), clock, Arc::default()).unwrap();
        let file = folder.root().join("x.db");
        let open = || Db::open(&folder, file.clone(), &format, &|_| Ok(())).unwrap();
        let rows = LOG_PAGES_MAX * 2;
        let mut longest = 0;
        for n in 0..rows {
            let db = open();
            let add = |conn: &Connection| {
                conn.execute("INSERT INTO a VALUES (?1, printf('%.4000c', 'x'))", [n.cast_signed()])
            };
            if n % 2 == 0 {
                db.write_one(None, add).unwrap();
            } else {
                db.write(None, false, |tx| Ok(add(tx)?)).unwrap();
            }
            longest = longest.max(db.log.metadata().unwrap().len());
        }
        assert!(longest <= (LOG_PAGES_MAX + 8) * LOG_PAGE_BYTES, "{longest}");
        let found: i64 =
            open().read(|conn| Ok(conn.query_row("SELECT count(*) FROM a", [], |row| row.get(0))?)).unwrap();
        assert_eq!(found, rows.cast_signed());
    }
}
