//! The way from a folder to one below it, without following a link.

use crate::{FileError, FileKind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// A folder that files are opened in. `O_PATH` needs no permission to list it.
#[cfg(target_os = "linux")]
pub(crate) const IN_FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A folder that files are opened in.
#[cfg(not(target_os = "linux"))]
pub(crate) const IN_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder at `root`, which may be reached by links.
pub(crate) fn open_root(root: &Path) -> Result<OwnedFd, FileError> {
    open(root, IN_FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR => FileError::NotAFolder { path: root.to_owned() },
        error => FileError::io(root, error),
    })
}

/// The names on the way; `None` where the path leads out. As no name on the way may be a link,
/// `..` takes the name before it away.
pub(crate) fn names(below: &Path) -> Option<PathBuf> {
    let mut names = PathBuf::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !names.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}

/// Opens the folder `below` the open folder `root`. With `make`, missing folders are created.
pub(crate) fn open_below(
    root: OwnedFd,
    root_path: &Path,
    below: &Path,
    make: bool,
) -> Result<OwnedFd, FileError> {
    if below.as_os_str().is_empty() {
        return Ok(root);
    }
    // The system's own way first. Whatever it refuses is looked at name by name, which is also how
    // it is done where this call does not exist: that finds which name is to blame.
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
        if let Ok(found) = openat2(&root, below, IN_FOLDER, Mode::empty(), resolve) {
            return Ok(found);
        }
    }
    open_by_name(root, root_path, below, make)
}

/// Opens one folder after the other.
fn open_by_name(root: OwnedFd, root_path: &Path, below: &Path, make: bool) -> Result<OwnedFd, FileError> {
    let (mut at, mut path) = (root, root_path.to_owned());
    for name in below {
        path.push(name);
        let open = || openat(&at, Path::new(name), IN_FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let mut found = open();
        if make && found.as_ref().is_err_and(|error| *error == Errno::NOENT) {
            match rustix::fs::mkdirat(&at, Path::new(name), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => found = open(),
                Err(error) => return Err(FileError::io(&path, error)),
            }
        }
        let next = found.map_err(|error| no_folder(&at, Path::new(name), &path, error))?;
        at = next;
    }
    Ok(at)
}

/// Why a name on the way is no folder.
fn no_folder(at: impl AsFd, name: &Path, path: &Path, error: Errno) -> FileError {
    match kind_at(at, name) {
        Ok(FileType::Symlink) => FileError::Refused { path: path.to_owned(), kind: FileKind::Link },
        Ok(FileType::Directory) | Err(_) => FileError::io(path, error),
        Ok(_) => FileError::NotAFolder { path: path.to_owned() },
    }
}

/// What is at a name, links not followed.
pub(crate) fn kind_at(at: impl AsFd, name: &Path) -> Result<FileType, Errno> {
    let found = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_ways_find_the_same() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/file"), "x").unwrap();
        symlink("b", at("a/inside")).unwrap();
        symlink("/", at("a/out")).unwrap();
        for below in ["a", "a/b", "a/inside", "a/out", "a/out/tmp", "a/file", "a/none", "a/none/b"] {
            let root = || open_root(scratch.path()).unwrap();
            let one = open_below(root(), scratch.path(), Path::new(below), false);
            let other = open_by_name(root(), scratch.path(), Path::new(below), false);
            let words = |found: Result<OwnedFd, FileError>| found.map(|_| ()).map_err(|e| e.to_string());
            let (one, other) = (words(one), words(other));
            assert_eq!(one, other, "{below}");
            assert_eq!(one.is_ok(), ["a", "a/b"].contains(&below), "{below}: {one:?}");
        }
    }

    #[test]
    fn the_way_up_ends_at_the_folder() {
        let names = |text: &str| names(Path::new(text)).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(names("a/./b/../c").as_deref(), Some("a/c"));
        assert_eq!(names("").as_deref(), Some(""));
        for out in ["..", "a/../..", "../x", "/etc", "a/../../x"] {
            assert_eq!(names(out), None, "{out}");
        }
    }
}
