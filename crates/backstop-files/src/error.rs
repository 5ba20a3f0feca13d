//! Why a file was refused or could not be used, in words that name the path and what to type.

use backstop_core::shell::quoted;
use rustix::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What is in the place of a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A character or block device.
    Device,
    /// A socket, or something else.
    Other,
}

impl FileKind {
    /// `None` for a regular file.
    pub(crate) fn of(found: FileType) -> Option<Self> {
        match found {
            FileType::RegularFile => None,
            FileType::Symlink => Some(Self::Link),
            FileType::Directory => Some(Self::Folder),
            FileType::Fifo => Some(Self::Pipe),
            FileType::CharacterDevice | FileType::BlockDevice => Some(Self::Device),
            _ => Some(Self::Other),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Link => "a symbolic link, which Backstop does not follow here",
            Self::Folder => "a folder where Backstop needs a file",
            Self::Pipe => "a named pipe where Backstop needs a file",
            Self::Device => "a device where Backstop needs a file",
            Self::Other => "not a regular file",
        }
    }
}

/// Why a file was refused or could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Something else is where a file, or a folder on the way to it, should be.
    #[error("{} is {}: {}", path.display(), kind.words(), remedy(path, *kind))]
    Refused {
        /// The path of it, which may be a folder above the file.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// A file is where a folder should be.
    #[error("{} is not a folder: {}", path.display(), remedy(path, FileKind::Folder))]
    NotAFolder {
        /// The path of it.
        path: PathBuf,
    },
    /// The path leads out of the folder.
    #[error("{} leads out of its folder", path.display())]
    Outside {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The file is larger than what is read.
    #[error("{} is larger than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How much is read at most.
        bytes_max: u64,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn remedy(path: &Path, kind: FileKind) -> String {
    // Whoever names a device of the system must not be told to remove it.
    let is_system = ["/dev", "/proc", "/sys"].iter().any(|system| path.starts_with(system));
    if is_system && !path.starts_with("/dev/shm") {
        return "name a file of your own".to_owned();
    }
    let path = quoted(&path.to_string_lossy());
    match kind {
        FileKind::Folder => format!("move it away: mv {path} {path}.old"),
        _ => format!("remove it: rm {path}"),
    }
}

impl FileError {
    pub(crate) fn io(path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }

    /// The kind of the error, as the system would call it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { kind: FileKind::Folder, .. } => ErrorKind::IsADirectory,
            Self::Refused { .. } | Self::Outside { .. } => ErrorKind::InvalidInput,
            Self::NotAFolder { .. } => ErrorKind::NotADirectory,
            Self::TooLarge { .. } => ErrorKind::FileTooLarge,
            Self::Io { source, .. } => source.kind(),
        }
    }

    /// Whether there is no such file, or no folder on the way to it.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }
}

impl From<FileError> for std::io::Error {
    /// What the system said, without the path; a refusal keeps its words.
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { source, .. } => source,
            refused => Self::new(refused.kind(), refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_remove_what_belongs_to_the_system() {
        for (path, kind, want) in [
            ("/dev/zero", FileKind::Device, "name a file of your own"),
            ("/proc/self", FileKind::Link, "name a file of your own"),
            ("/dev/shm/x", FileKind::Pipe, "remove it: rm /dev/shm/x"),
            ("/work/a b", FileKind::Device, "remove it: rm '/work/a b'"),
            ("/work/x", FileKind::Folder, "move it away: mv /work/x /work/x.old"),
        ] {
            assert_eq!(remedy(Path::new(path), kind), want, "{path}");
        }
        let refused = FileError::NotAFolder { path: "/dev/null".into() };
        assert_eq!(refused.to_string(), "/dev/null is not a folder: name a file of your own");
    }
}
