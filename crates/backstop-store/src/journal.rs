//! The database of one project: how it is opened, and what all its parts share.

use crate::db::{CommitHook, Db};
use crate::error::TransactionError;
use crate::folder::canonical;
use crate::masked::{Masked, mask_event, mask_text};
use crate::{Clock, ProjectKey, StateFolder, StoreError, schema};
use backstop_core::{EventKind, Redactor, SafeText, Timestamp};
use rusqlite::{Connection, Transaction, params};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database of one project: its runs, their events, its deferred work. Clones share one
/// connection.
#[derive(Clone)]
pub struct Journal {
    pub(crate) db: Arc<Db>,
    clock: Clock,
    pub(crate) redactor: Arc<Redactor>,
    hook: Option<CommitHook>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("file", &self.file()).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the database of the project at this path; creates it if it is missing.
    pub fn open(folder: &StateFolder, project_root: &Path) -> Result<Self, StoreError> {
        let root = canonical(project_root)?;
        let file = folder.project_file(&ProjectKey::of(&root));
        let now = (folder.clock)();
        let db = Db::open(folder, file, &schema::PROJECT, &|conn| seed(conn, Some(&root), now))?;
        Ok(Self::of(folder, db))
    }

    /// Opens the database of the project at this path, if it exists.
    pub fn open_existing(folder: &StateFolder, project_root: &Path) -> Result<Option<Self>, StoreError> {
        let root = canonical(project_root)?;
        Self::open_file(folder, folder.project_file(&ProjectKey::of(&root)), Some(&root))
    }

    /// Opens the database with this key, if it exists.
    pub fn open_key(folder: &StateFolder, key: &ProjectKey) -> Result<Option<Self>, StoreError> {
        Self::open_file(folder, folder.project_file(key), None)
    }

    fn open_file(
        folder: &StateFolder,
        file: PathBuf,
        root: Option<&Path>,
    ) -> Result<Option<Self>, StoreError> {
        let now = (folder.clock)();
        let db = Db::open_existing(folder, file, &schema::PROJECT, &|conn| seed(conn, root, now))?;
        Ok(db.map(|db| Self::of(folder, db)))
    }

    fn of(folder: &StateFolder, db: Db) -> Self {
        Self {
            db: Arc::new(db),
            clock: Arc::clone(&folder.clock),
            redactor: Arc::clone(&folder.redactor),
            hook: None,
        }
    }

    /// Calls `hook` around every commit, so that a test can end the process there.
    #[must_use]
    pub fn on_commit(mut self, hook: CommitHook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// The path of the database.
    pub fn file(&self) -> &Path {
        self.db.file()
    }

    /// The path of the project when the database was created.
    pub fn project_path(&self) -> Result<Option<PathBuf>, StoreError> {
        self.db.read(|conn| {
            let mut found = conn.prepare("SELECT value FROM meta WHERE key = 'project'")?;
            let mut rows = found.query([])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let bytes: Vec<u8> = row.get(0)?;
            Ok(Some(PathBuf::from(OsStr::from_bytes(&bytes))))
        })
    }

    /// Reads the whole database and reports damage. Slow: for `doctor` and tests.
    pub fn check(&self) -> Result<(), StoreError> {
        self.db.check()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn mask(&self, kinds: Vec<EventKind>) -> Result<Vec<Masked>, StoreError> {
        let mask = |kind: EventKind| {
            let what = kind.name();
            mask_event(&self.redactor, kind).map_err(|error| StoreError::Unrecordable {
                what: what.to_owned(),
                file: self.file().to_owned(),
                why: error.to_string(),
            })
        };
        kinds.into_iter().map(mask).collect()
    }

    pub(crate) fn mask_text(&self, text: &SafeText) -> SafeText {
        mask_text(&self.redactor, text)
    }

    pub(crate) fn write<T>(
        &self,
        durable: bool,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.db.write(self.hook.as_ref(), durable, write)
    }

    pub(crate) fn write_one<T>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.db.write_one(self.hook.as_ref(), write)
    }
}

/// The first rows of a new database: the project's path, and the time of the last clean-up.
fn seed(conn: &Connection, root: Option<&Path>, now: Timestamp) -> rusqlite::Result<()> {
    if let Some(root) = root {
        let bytes = root.as_os_str().as_bytes();
        conn.execute("INSERT INTO meta (key, value) VALUES ('project', ?1)", params![bytes])?;
    }
    conn.execute("INSERT INTO meta (key, value) VALUES ('cleaned_at', ?1)", params![now.as_millis()])?;
    Ok(())
}
