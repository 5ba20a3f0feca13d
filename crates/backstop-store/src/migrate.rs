//! The formats of databases, and how an older one is migrated to the newest.
//!
//! A [`Format`] is a list of steps; the number of steps done is the database's `user_version`. All
//! missing steps run in one transaction, after a copy of the older database was put beside it. A
//! newer format is refused.

use crate::db::Initializer;
use crate::folder::{make_private_file, suffixed};
use crate::{StoreError, error::TransactionError};
use rusqlite::{Connection, TransactionBehavior};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The steps from an empty file to the newest format.
pub(crate) struct Format {
    /// The SQL of each version. Never changed once it was released: a new version is a new step.
    pub(crate) steps: &'static [&'static str],
}

impl Format {
    /// The newest version.
    pub(crate) fn version(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }
}

/// The version of a database; 0 if it is empty.
pub(crate) fn version(conn: &Connection, file: &Path) -> Result<u32, StoreError> {
    read_version(conn).map_err(|error| StoreError::sqlite(file, &error))
}

fn read_version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Migrates a database to the newest version. The caller holds the folder's lock.
pub(crate) fn bring_up(
    conn: &Connection,
    file: &Path,
    format: &Format,
    seed: Initializer<'_>,
) -> Result<(), StoreError> {
    // Another process may have done it while this one waited for the lock.
    let found = version(conn, file)?;
    let known = format.version();
    if found == known {
        return Ok(());
    }
    if found > known {
        return Err(StoreError::Newer { file: file.to_owned(), found, known });
    }
    if found == 0 {
        start(conn, file)?;
    } else {
        back_up(conn, file, found)?;
    }
    step_up(conn, format, found, seed).map_err(|trouble| trouble.at(file))
}

/// Sets what can only be set while a database is empty.
fn start(conn: &Connection, file: &Path) -> Result<(), StoreError> {
    let start = || -> rusqlite::Result<bool> {
        let tables: u32 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables > 0 {
            return Ok(false);
        }
        conn.execute_batch("PRAGMA auto_vacuum=INCREMENTAL")?;
        let _: String = conn.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
        Ok(true)
    };
    match start() {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::Corrupt {
            file: file.to_owned(),
            why: "it has tables and no version: somebody else's database".to_owned(),
        }),
        Err(error) => Err(StoreError::sqlite(file, &error)),
    }
}

fn step_up(
    conn: &Connection,
    format: &Format,
    found: u32,
    seed: Initializer<'_>,
) -> Result<(), TransactionError> {
    let tx = rusqlite::Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    for step in format.steps.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        tx.execute_batch(step)?;
    }
    if found == 0 {
        seed(&tx)?;
    }
    tx.execute_batch(&format!("PRAGMA user_version={}", format.version()))?;
    tx.commit()?;
    Ok(())
}

/// The path of the copy of a database of an older version.
pub(crate) fn backup_path(file: &Path, version: u32) -> PathBuf {
    suffixed(file, &format!(".v{version}.bak"))
}

/// Copies the database beside itself. An unfinished copy has another name, and is made again.
fn back_up(conn: &Connection, file: &Path, version: u32) -> Result<(), StoreError> {
    let target = backup_path(file, version);
    let unfinished = suffixed(&target, ".part");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StoreError::io(&unfinished, &error));
        }
        _ => {}
    }
    make_private_file(&unfinished)?;
    let name = std::str::from_utf8(unfinished.as_os_str().as_bytes()).map_err(|_| StoreError::Io {
        file: unfinished.clone(),
        why: "a backup needs a path that is valid UTF-8".to_owned(),
    })?;
    conn.execute("VACUUM INTO ?1", [name]).map_err(|error| StoreError::sqlite(&unfinished, &error))?;
    std::fs::rename(&unfinished, &target).map_err(|error| StoreError::io(&target, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StateFolder;
    use crate::db::Db;
    use backstop_core::{Redactor, Timestamp};
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    const ONE: Format = Format { steps: &["CREATE TABLE a (x)"] };
    const THREE: Format = Format {
        steps: &[
            "CREATE TABLE a (x)",
            "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x * 2",
            "CREATE TABLE b AS SELECT y FROM a",
        ],
    };
    const BROKEN: Format =
        Format { steps: &["CREATE TABLE a (x)", "CREATE TABLE c (z)", "INSERT INTO nowhere VALUES (1)"] };

    fn folder() -> (tempfile::TempDir, StateFolder, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Timestamp::from_millis(0));
        let folder = StateFolder::open(&temp.path().join("s"), clock, Arc::new(Redactor::default())).unwrap();
        let file = folder.root().join("x.db");
        (temp, folder, file)
    }

    fn seed(conn: &Connection) -> rusqlite::Result<()> {
        conn.execute_batch("INSERT INTO a (x) VALUES (21)")
    }

    fn number(db: &Db, sql: &str) -> i64 {
        db.read(|conn| Ok(conn.query_row(sql, [], |row| row.get(0))?)).unwrap()
    }

    #[test]
    fn an_older_database_is_copied_and_then_brought_up() {
        let (_temp, folder, file) = folder();
        drop(Db::open(&folder, file.clone(), &ONE, &seed).unwrap());
        let db = Db::open(&folder, file.clone(), &THREE, &seed).unwrap();
        assert_eq!(number(&db, "SELECT y FROM b"), 42);
        assert_eq!(number(&db, "PRAGMA user_version"), 3);
        let backup = backup_path(&file, 1);
        assert_eq!(backup.metadata().unwrap().mode() & 0o777, 0o600);
        let old = Db::open_existing(&folder, backup, &ONE, &seed).unwrap().unwrap();
        assert_eq!(number(&old, "SELECT x FROM a"), 21);
    }

    #[test]
    fn a_fresh_database_needs_no_copy() {
        let (_temp, folder, file) = folder();
        let db = Db::open(&folder, file.clone(), &THREE, &|_| Ok(())).unwrap();
        assert_eq!(number(&db, "SELECT count(*) FROM b"), 0);
        assert!(!backup_path(&file, 0).exists());
    }

    #[test]
    fn a_newer_database_is_refused_and_left_as_it_is() {
        let (_temp, folder, file) = folder();
        drop(Db::open(&folder, file.clone(), &THREE, &seed).unwrap());
        let error = Db::open(&folder, file.clone(), &ONE, &seed).err().unwrap();
        assert_eq!(error, StoreError::Newer { file: file.clone(), found: 3, known: 1 });
        assert!(error.hint().contains("update"), "{}", error.hint());
        assert!(Db::open(&folder, file, &THREE, &seed).is_ok());
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_database() {
        let (_temp, folder, file) = folder();
        drop(Db::open(&folder, file.clone(), &ONE, &seed).unwrap());
        assert!(Db::open(&folder, file.clone(), &BROKEN, &seed).is_err());
        // Twice: the copy of the first try is no hindrance.
        assert!(Db::open(&folder, file.clone(), &BROKEN, &seed).is_err());
        let db = Db::open(&folder, file, &ONE, &seed).unwrap();
        assert_eq!(number(&db, "SELECT x FROM a"), 21);
    }

    #[test]
    fn somebody_elses_database_is_refused() {
        let (_temp, folder, file) = folder();
        make_private_file(&file).unwrap();
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(matches!(Db::open(&folder, file, &ONE, &seed), Err(StoreError::Corrupt { .. })));
    }
}
