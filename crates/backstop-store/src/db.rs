//! One open database: how it is opened, read and written.
//!
//! Every write is a single statement or a `BEGIN IMMEDIATE` transaction, with [`CommitPoint`]s around it at which a
//! test can end the process. Opening an existing database costs two statements; whatever is dearer happens once, when
//! it is made or migrated.

use crate::error::Trouble;
use crate::folder::{Found, StateFolder, make_private_file, private_file};
use crate::migrate::{self, Format};
use crate::{StoreError, folder};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a writer waits for the others.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A commit that makes the log longer than this moves it into the database, and waits for the disk. Whoever opens the
/// database alone reads the whole log first, about 1 µs a page; a run of one attempt writes about 15 pages. SQLite's own
/// 1000 made every short command half a millisecond slower; this many makes one in twenty wait for the disk.
const LOG_PAGES_MAX: u32 = 300;

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
}

/// What is written into a database when it is made, in the same transaction as its tables.
pub(crate) type Seed<'s> = &'s dyn Fn(&Connection) -> rusqlite::Result<()>;

impl Db {
    /// Opens a database, and makes it where it is missing.
    pub(crate) fn open(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Seed<'_>,
    ) -> Result<Self, StoreError> {
        if private_file(&file)? == Found::There {
            return Self::open_found(folder, file, format, seed);
        }
        if let Some(parent) = file.parent() {
            folder::private_folder(parent, false)?;
        }
        let _lock = folder.lock()?;
        make_private_file(&file)?;
        let conn = connect(&file)?;
        migrate::bring_up(&conn, &file, format, seed)?;
        Ok(Self { conn: Mutex::new(conn), file })
    }

    /// Opens a database if it is there.
    pub(crate) fn open_existing(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Seed<'_>,
    ) -> Result<Option<Self>, StoreError> {
        match private_file(&file)? {
            Found::Missing => Ok(None),
            Found::There => Self::open_found(folder, file, format, seed).map(Some),
        }
    }

    fn open_found(
        folder: &StateFolder,
        file: PathBuf,
        format: &Format,
        seed: Seed<'_>,
    ) -> Result<Self, StoreError> {
        let conn = connect(&file)?;
        if migrate::version(&conn, &file)? != format.version() {
            let _lock = folder.lock()?;
            migrate::bring_up(&conn, &file, format, seed)?;
        }
        Ok(Self { conn: Mutex::new(conn), file })
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
        read: impl FnOnce(&Connection) -> Result<T, Trouble>,
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
        Ok(done)
    }

    /// Writes in one transaction: all, or nothing where `write` fails. What is `durable` is on the disk when this returns;
    /// everything else survives the death of the process.
    pub(crate) fn write<T>(
        &self,
        hook: Option<&CommitHook>,
        durable: bool,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let mut conn = self.conn();
        let level = |conn: &Connection, level: &str| {
            let set = if durable { conn.pragma_update(None, "synchronous", level) } else { Ok(()) };
            set.map_err(|error| StoreError::sqlite(&self.file, &error))
        };
        level(&conn, "FULL")?;
        let transaction = || -> Result<T, Trouble> {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = write(&tx)?;
            reached(hook, CommitPoint::Before);
            tx.commit()?;
            reached(hook, CommitPoint::After);
            Ok(done)
        };
        let done = transaction().map_err(|trouble| trouble.at(&self.file));
        level(&conn, "NORMAL")?;
        done
    }

    /// Moves the log into the database and empties it. Whoever reads at this moment is not waited for.
    pub(crate) fn empty_log(&self) -> Result<(), StoreError> {
        self.read(|conn| {
            conn.busy_timeout(Duration::ZERO)?;
            let busy: rusqlite::Result<i64> =
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
            conn.busy_timeout(BUSY_TIMEOUT)?;
            match busy.map_err(|error| StoreError::sqlite(&self.file, &error)) {
                Ok(_) | Err(StoreError::Busy { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// How many bytes the database and its log take.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| path.metadata().map_or(0, |found| found.len());
        size(&self.file) + size(&folder::suffixed(&self.file, "-wal"))
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
        let conn = Connection::open_with_flags(file, flags)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        // The last process to leave would otherwise wait for the disk, and with it the user.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.execute_batch(&format!("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint={LOG_PAGES_MAX}"))?;
        Ok(conn)
    };
    open().map_err(|error| StoreError::sqlite(file, &error))
}
