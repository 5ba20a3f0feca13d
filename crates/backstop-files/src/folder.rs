//! A folder below which files are opened without following links.

use crate::replace::replace_in;
use crate::walk::{kind_at, names, open_below, open_root};
use crate::{Durability, FileError, FileKind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The mode of a new file before the process's mask.
const FILE_MODE: u32 = 0o666;

/// A folder below which files are opened without following links. The folder itself may be reached
/// by links.
///
/// Files are named by their path below the folder, or by that path behind the folder's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// A file's folder, opened, and its name in it.
struct Entry {
    folder: OwnedFd,
    name: OsString,
    /// The whole path, for messages.
    path: PathBuf,
}

impl Folder {
    /// The folder at this path. Nothing is opened yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file; `None` if there is none. A file of more than `bytes_max` bytes is refused.
    pub fn read(&self, file: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
        match self.open(file) {
            Ok(opened) => read_whole(opened, &self.path.join(file), bytes_max).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file for reading.
    pub fn open(&self, file: &Path) -> Result<File, FileError> {
        self.entry(file)?.open(OFlags::RDONLY, FILE_MODE)
    }

    /// Opens a file for appending; creates it if it is missing.
    pub fn append(&self, file: &Path) -> Result<File, FileError> {
        self.append_as(file, FILE_MODE)
    }

    /// Like [`Self::append`], for a file that only this user may read.
    pub fn append_private(&self, file: &Path) -> Result<File, FileError> {
        self.append_as(file, 0o600)
    }

    fn append_as(&self, file: &Path, mode: u32) -> Result<File, FileError> {
        self.entry(file)?.open(OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND, mode)
    }

    /// Appends whole lines to a file that others read meanwhile.
    pub fn append_lines(&self, file: &Path, lines: &[u8]) -> Result<(), FileError> {
        self.append(file)?.write_all(lines).map_err(|error| FileError::io(&self.path.join(file), error))
    }

    /// Opens a file for reading and writing, for this user alone; creates it if it is missing. Its
    /// content stays.
    pub fn open_private(&self, file: &Path) -> Result<File, FileError> {
        self.entry(file)?.open(OFlags::RDWR | OFlags::CREATE, 0o600)
    }

    /// Replaces a file atomically: readers see the old content or the new, never a part.
    pub fn replace(&self, file: &Path, content: &[u8], durability: Durability) -> Result<(), FileError> {
        let entry = self.entry(file)?;
        let there = match entry.kind() {
            Ok(kind) => FileKind::of(kind).map_or(Ok(()), |kind| Err(entry.refused(kind))),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(FileError::io(&entry.path, error)),
        };
        there?;
        replace_in(&entry.folder, &entry.name, content, durability)
            .map_err(|error| FileError::io(&entry.path, error))
    }

    /// Creates a folder and those above it, as far as they are missing.
    pub fn make_folder(&self, folder: &Path) -> Result<(), FileError> {
        let below = self.below(folder)?;
        open_below(open_root(&self.path)?, &self.path, &below, true).map(drop)
    }

    /// Whether something is there, be it a file or not. Whatever cannot be looked at is an error.
    pub fn exists(&self, file: &Path) -> Result<bool, FileError> {
        match self
            .entry(file)
            .and_then(|entry| entry.kind().map_err(|error| FileError::io(&entry.path, error)))
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a folder, and no link on the way to it.
    pub fn has_folder(&self, folder: &Path) -> bool {
        let open = || open_below(open_root(&self.path)?, &self.path, &self.below(folder)?, false);
        open().is_ok()
    }

    /// Renames a file, a folder, or whatever it is.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        rustix::fs::renameat(&from.folder, &from.name, &to.folder, &to.name)
            .map_err(|error| FileError::io(&from.path, error))
    }

    /// Removes a file, or the link or pipe in its place.
    pub fn remove(&self, file: &Path) -> Result<(), FileError> {
        let entry = self.entry(file)?;
        rustix::fs::unlinkat(&entry.folder, &entry.name, rustix::fs::AtFlags::empty())
            .map_err(|error| FileError::io(&entry.path, error))
    }

    /// The path below the folder, by names alone.
    fn below(&self, file: &Path) -> Result<PathBuf, FileError> {
        let below = if file.is_absolute() { file.strip_prefix(&self.path).ok() } else { Some(file) };
        below.and_then(names).ok_or_else(|| FileError::Outside { path: file.to_owned() })
    }

    fn entry(&self, file: &Path) -> Result<Entry, FileError> {
        let below = self.below(file)?;
        let outside = || FileError::Outside { path: file.to_owned() };
        let name = below.file_name().ok_or_else(outside)?.to_owned();
        let above = below.parent().unwrap_or(Path::new(""));
        let folder = open_below(open_root(&self.path)?, &self.path, above, false)?;
        Ok(Entry { folder, name, path: self.path.join(&below) })
    }
}

impl Entry {
    fn kind(&self) -> Result<FileType, Errno> {
        kind_at(&self.folder, Path::new(&self.name))
    }

    fn refused(&self, kind: FileKind) -> FileError {
        FileError::Refused { path: self.path.clone(), kind }
    }

    /// Opens the regular file of this name. It is looked at before it is opened, because opening a
    /// device can do something, and again afterwards, because it may have changed in between.
    fn open(&self, flags: OFlags, mode: u32) -> Result<File, FileError> {
        if let Some(kind) = self.kind().ok().and_then(FileKind::of) {
            return Err(self.refused(kind));
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // The mode as the system has it: 16 bits wide on some.
        let mode = Mode::from_bits_truncate(mode as _);
        let opened = openat(&self.folder, &self.name, flags, mode).map_err(|error| match error {
            Errno::LOOP => self.refused(FileKind::Link),
            error => FileError::io(&self.path, error),
        })?;
        check_regular(&opened, &self.path)?;
        Ok(File::from(opened))
    }
}

/// Refuses what is not a regular file.
pub(crate) fn check_regular(opened: impl AsFd, path: &Path) -> Result<(), FileError> {
    let found = fstat(opened).map_err(|error| FileError::io(path, error))?;
    match FileKind::of(FileType::from_raw_mode(found.st_mode)) {
        Some(kind) => Err(FileError::Refused { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// The content of an open file, or an error where it is larger than `bytes_max`.
pub(crate) fn read_whole(file: File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| FileError::io(path, error))?;
    if bytes.len() as u64 > bytes_max {
        return Err(FileError::TooLarge { path: path.to_owned(), bytes_max });
    }
    Ok(bytes)
}
