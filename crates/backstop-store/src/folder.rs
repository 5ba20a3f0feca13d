//! The user's state folder: private to its user, and the only place where anything is stored.
//!
//! [`StateFolder`] checks it once, and passes it on together with the [`Clock`] and the redactor
//! that the caller chose. It must not follow a symbolic link, and must not delete anything.

use crate::{ProjectKey, StoreError, filesystem};
use backstop_core::{BootTime, ClockReading, Name, Redactor, Timestamp};
use backstop_files::Folder;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The source of the time since the machine was started; `None` where that is not known.
pub type BootClock = Arc<dyn Fn() -> Option<BootTime> + Send + Sync>;

/// The folder of the projects' databases.
const PROJECTS: &str = "projects";

/// The smallest database: one page of the smallest size.
const DATABASE_BYTES_MIN: u64 = 512;

/// The user's state folder.
#[derive(Clone)]
pub struct StateFolder {
    root: PathBuf,
    pub(crate) clock: Clock,
    pub(crate) boot_clock: BootClock,
    pub(crate) redactor: Arc<Redactor>,
}

impl std::fmt::Debug for StateFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateFolder").field("root", &self.root).finish_non_exhaustive()
    }
}

impl StateFolder {
    /// Opens the folder; creates it with mode 0700 if it is missing, and removes the permissions of
    /// others if there are any.
    ///
    /// Everything stored in it gets its time from `clock` and goes through `redactor` first.
    pub fn open(root: &Path, clock: Clock, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        // A trailing slash would make the system follow a link.
        let root: PathBuf = root.components().collect();
        private_folder(&root, true)?;
        let root = root.canonicalize().map_err(|error| StoreError::io(&root, &error))?;
        Ok(Self { root, clock, boot_clock: Arc::new(|| None), redactor })
    }

    /// Limits end by this clock too, so that a wall clock that is set back keeps nothing closed.
    pub fn with_boot_clock(mut self, boot_clock: BootClock) -> Self {
        self.boot_clock = boot_clock;
        self
    }

    /// One look at both clocks.
    pub(crate) fn reading(clock: &Clock, boot_clock: &BootClock) -> ClockReading {
        ClockReading { wall: clock(), boot: boot_clock() }
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the files in it, links not followed.
    pub(crate) fn files(&self) -> Folder {
        Folder::new(&self.root)
    }

    /// A warning if the folder is on a network file system, where SQLite's locks are not reliable.
    pub fn filesystem_note(&self) -> Option<String> {
        filesystem::filesystem_note(&self.root)
    }

    /// Checks whether the folder can be written, with a small file that is removed again.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        filesystem::check_writable(&self.root)
    }

    /// Moves the database of a project aside, with its log, and returns its new path; `None` if
    /// there is none. Nothing is deleted, and the next command starts a new database.
    pub fn quarantine(&self, project_root: &Path) -> Result<Option<PathBuf>, StoreError> {
        self.put_aside(&self.project_file(&ProjectKey::of(&canonical(project_root)?)))
    }

    /// Moves the database of shared limits aside, as [`StateFolder::quarantine`] does.
    pub fn quarantine_limits(&self) -> Result<Option<PathBuf>, StoreError> {
        self.put_aside(&self.limits_file())
    }

    /// Moves the user's database aside, as [`Self::quarantine`] does.
    pub fn quarantine_user(&self) -> Result<Option<PathBuf>, StoreError> {
        self.put_aside(&self.user_file())
    }

    /// Moves the outbox aside, as [`Self::quarantine`] does.
    pub fn quarantine_outbox(&self) -> Result<Option<PathBuf>, StoreError> {
        self.put_aside(&self.outbox_file())
    }

    /// Moves the database of hooks aside, as [`Self::quarantine`] does.
    pub fn quarantine_hooks(&self) -> Result<Option<PathBuf>, StoreError> {
        self.put_aside(&self.hooks_file())
    }

    fn put_aside(&self, file: &Path) -> Result<Option<PathBuf>, StoreError> {
        let _lock = self.lock()?;
        if file.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        let stem = suffixed(file, &format!(".corrupt-{}", (self.clock)().as_millis()));
        let mut target = stem.clone();
        let mut n = 1;
        while target.symlink_metadata().is_ok() {
            n += 1;
            target = suffixed(&stem, &format!(".{n}"));
        }
        // The log goes first: beside a new database it would be taken for that one's.
        for part in ["-wal", "-shm", ""] {
            let from = suffixed(file, part);
            match std::fs::rename(&from, suffixed(&target, part)) {
                Err(error) if error.kind() == ErrorKind::NotFound && !part.is_empty() => {}
                done => done.map_err(|error| StoreError::io(&from, &error))?,
            }
        }
        Ok(Some(target))
    }

    /// A lock held while a database is created, migrated or moved aside: one process at a time.
    pub(crate) fn lock(&self) -> Result<File, StoreError> {
        let path = self.root.join("lock");
        let file = self.files().open_private(&path).map_err(StoreError::file)?;
        file.lock().map_err(|error| StoreError::io(&path, &error))?;
        Ok(file)
    }

    /// A private folder for files of a project that are neither a database nor a lock. Created if
    /// it is missing.
    pub fn work_folder(&self, project_root: &Path, name: &Name) -> Result<PathBuf, StoreError> {
        let mut path = self.root.join("work");
        private_folder(&path, false)?;
        for part in [ProjectKey::of(&canonical(project_root)?).as_str(), name.as_str()] {
            path.push(part);
            private_folder(&path, false)?;
        }
        Ok(path)
    }

    pub(crate) fn limits_file(&self) -> PathBuf {
        self.root.join("limits.db")
    }

    pub(crate) fn outbox_file(&self) -> PathBuf {
        self.root.join("outbox.db")
    }

    pub(crate) fn hooks_file(&self) -> PathBuf {
        self.root.join("hook.db")
    }

    pub(crate) fn user_file(&self) -> PathBuf {
        self.root.join("user.db")
    }

    /// Creates the folder of the projects' databases if it is missing.
    pub(crate) fn make_projects_folder(&self) -> Result<(), StoreError> {
        private_folder(&self.projects_folder(), false)
    }

    pub(crate) fn projects_folder(&self) -> PathBuf {
        self.root.join(PROJECTS)
    }

    pub(crate) fn project_file(&self, key: &ProjectKey) -> PathBuf {
        self.projects_folder().join(key.file_name())
    }
}

/// The canonical path of a project. A folder that no longer exists keeps the given path.
pub(crate) fn canonical(project_root: &Path) -> Result<PathBuf, StoreError> {
    match project_root.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(project_root),
        found => found,
    }
    .map_err(|error| StoreError::io(project_root, &error))
}

/// The path with a suffix added to its file name.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a folder that only this user can read, or makes an existing one so.
pub(crate) fn private_folder(path: &Path, with_parents: bool) -> Result<(), StoreError> {
    let io = |error: &std::io::Error| StoreError::io(path, error);
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let (true, Some(parent)) = (with_parents, path.parent()) {
                std::fs::create_dir_all(parent).map_err(|error| StoreError::io(parent, &error))?;
            }
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io(&error)),
                _ => path.symlink_metadata(),
            }
        }
        found => found,
    }
    .map_err(|error| io(&error))?;
    if found.is_symlink() {
        return Err(StoreError::Symlink { path: path.to_owned() });
    }
    if !found.is_dir() {
        return Err(StoreError::NotAFolder { path: path.to_owned() });
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(StoreError::NotOwned { path: path.to_owned(), owner: found.uid(), user });
    }
    if found.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(|error| io(&error))?;
    }
    Ok(())
}

/// Whether a database's file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    Missing,
    Present,
}

/// Checks a database's file, and removes the permissions of others if there are any.
pub(crate) fn private_file(file: &Path) -> Result<FileState, StoreError> {
    let found = match file.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileState::Missing),
        found => found.map_err(|error| StoreError::io(file, &error))?,
    };
    if found.is_symlink() {
        return Err(StoreError::Symlink { path: file.to_owned() });
    }
    if !found.is_file() {
        return Err(StoreError::Corrupt { file: file.to_owned(), why: "it is not a file".to_owned() });
    }
    // SQLite takes a file too short to be a database for an empty one, and would overwrite it.
    if (1..DATABASE_BYTES_MIN).contains(&found.len()) {
        return Err(StoreError::Corrupt { file: file.to_owned(), why: "it is cut short".to_owned() });
    }
    if found.mode() & 0o077 != 0 {
        let closed = std::fs::set_permissions(file, Permissions::from_mode(0o600));
        closed.map_err(|error| StoreError::io(file, &error))?;
    }
    Ok(FileState::Present)
}

/// Creates an empty file that only this user can read, if there is none. SQLite gives the files
/// beside it the same mode.
pub(crate) fn make_private_file(file: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(StoreError::io(file, &error)),
        _ => Ok(()),
    }
}
