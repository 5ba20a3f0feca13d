//! One open database: how it is opened, read and written.
//!
//! Every write is a single statement or a `BEGIN IMMEDIATE` transaction, with [`CommitPoint`]s around it at which a
//! test can end the process. Opening an existing database costs two statements; whatever is dearer happens once, when
//! it is made or migrated.

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

/// How a writer waits for the others: up to which question, and how long before it. About 10 s in all. SQLite's own steps
/// soon take as long as fifty commits do.
const BUSY_STEPS: [(i32, Duration); 3] =
    [(20, Duration::from_micros(500)), (110, Duration::from_millis(1)), (2090, Duration::from_millis(5))];

/// A commit that makes the log longer than this moves it into the database, and waits for the disk. Whoever opens the
/// database alone reads the whole log first, about 1 µs a page; a run of one attempt writes about 15 pages. SQLite's own
/// 1000 made every short command half a millisecond slower; this many makes one in twenty wait for the disk.
///
/// SQLite then leaves the log as long as it is, and begins it anew with the next commit of a process that knows that it was
/// moved. Where each process commits once, none does: the log would grow for ever and be moved by each. So whoever leaves
/// a log behind that was just moved empties it.
const LOG_PAGES_MAX: u64 = 300;

/// What a page takes in the log, with its head.
const LOG_PAGE_BYTES: u64 = 4096 + 24;

/// A point around the commit of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPoint {
    /// All is said, nothing is recorded yet.
    Before,
    /// It is recorded, nobody was told yet.
    After,
}

/// What is called at each [`CommitPoint`].
pub type CommitHook = Arc<dyn Fn(CommitPoint) + Send + Sync>;

/// One open database.
pub(crate) struct Db {
    conn: Mutex<Connection>,
    file: PathBuf,
    log: PathBuf,
    /// How long the log was after the last commit, and whether that commit made it too long.
    log_bytes: AtomicU64,
    log_is_long: AtomicBool,
}

/// What is written into a database when it is made, in the same transaction as its tables.
pub(crate) type Initializer<'s> = &'s dyn Fn(&Connection) -> rusqlite::Result<()>;

impl Db {
    /// Opens a database, and makes it where it is missing.
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

    /// Opens a database if it is there.
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

    /// Where it is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere has rolled its transaction back: the connection is as good as before.
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

    /// Writes in one transaction: all, or nothing where `write` fails. What is `durable` is on the disk when this returns;
    /// everything else survives the death of the process.
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

    /// Moves the log into the database and empties it. Whoever reads at this moment is not waited for.
    pub(crate) fn empty_log(&self) -> Result<(), StoreError> {
        match empty_log(&mut self.conn()).map_err(|error| StoreError::sqlite(&self.file, &error)) {
            Ok(()) | Err(StoreError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// After a commit: a log that it made longer than it may be was moved. One that was begun anew does not grow.
    fn look_at_log(&self) {
        let bytes = self.log.metadata().map_or(0, |found| found.len());
        let grew = bytes > self.log_bytes.swap(bytes, Ordering::Relaxed);
        self.log_is_long.store(grew && bytes > LOG_PAGES_MAX * LOG_PAGE_BYTES, Ordering::Relaxed);
    }

    /// How many bytes the database and its log take.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| path.metadata().map_or(0, |found| found.len());
        size(&self.file) + size(&self.log)
    }

    /// Reads every page and every index; says what is wrong with the first few.
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
            // What was committed is committed: where this fails, the next one tries again.
            let _ = empty_log(self.conn.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Moves the log into the database and empties it, unless somebody reads it.
fn empty_log(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(None::<fn(i32) -> bool>)?;
    let done = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    conn.busy_handler(Some(wait))?;
    done.map(|_| ())
}

/// Waits for whoever holds the database; says whether to ask once more.
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

/// Opens the file that is there. No link is followed, and nothing is made.
fn connect(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let open = || -> rusqlite::Result<Connection> {
        let mut conn = Connection::open_with_flags(file, flags)?;
        conn.busy_handler(Some(wait))?;
        // The last process to leave would otherwise wait for the disk, and with it the user.
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
