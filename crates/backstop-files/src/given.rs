//! A path that a person gave: below the project, where links are the repository's, or elsewhere,
//! where they are the person's own.

use crate::folder::read_whole;
use crate::walk::names;
use crate::{Durability, FileError, Folder, named};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A path that a person gave, for a file that Backstop reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenPath {
    /// Below the project: no link is followed from the project's root on.
    InProject {
        /// The project.
        project: Folder,
        /// The path below it.
        below: PathBuf,
    },
    /// Anywhere else: links are followed.
    Elsewhere(PathBuf),
}

impl GivenPath {
    /// Where `path` lies. A relative path must be given relative to the current folder, whose path
    /// is `cwd`. The way into the project may have links; from there on they are the repository's.
    pub fn new(path: &Path, cwd: &Path, project: &Path) -> Self {
        let whole = cwd.join(path);
        let in_project = || {
            // Where the whole machine is the project, what somebody names is still their own.
            let root = project.canonicalize().ok().filter(|root| root.parent().is_some())?;
            let mut folders: Vec<&Path> = whole.ancestors().skip(1).collect();
            folders.reverse();
            let entered = folders.into_iter().find_map(|folder| {
                let real = folder.canonicalize().ok()?;
                Some((real.strip_prefix(&root).ok()?.to_owned(), whole.strip_prefix(folder).ok()?))
            });
            let (start, rest) = entered?;
            Some(Self::InProject { project: Folder::new(&root), below: names(&start.join(rest))? })
        };
        in_project().unwrap_or_else(|| Self::Elsewhere(whole.clone()))
    }

    /// Replaces the file atomically.
    pub fn replace(&self, content: &[u8], durability: Durability) -> Result<(), FileError> {
        match self {
            Self::InProject { project, below } => project.replace(below, content, durability),
            Self::Elsewhere(path) => named::replace(path, content, durability),
        }
    }

    /// Opens the file for reading, if it is a regular one.
    pub fn open(&self) -> Result<File, FileError> {
        match self {
            Self::InProject { project, below } => project.open(below),
            Self::Elsewhere(path) => named::open(path),
        }
    }

    /// Reads the file, if it is a regular one of at most `bytes_max` bytes.
    pub fn read(&self, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let path = match self {
            Self::InProject { project, below } => project.path().join(below),
            Self::Elsewhere(path) => path.clone(),
        };
        read_whole(self.open()?, &path, bytes_max)
    }

    /// Appends whole lines.
    pub fn append_lines(&self, lines: &[u8]) -> Result<(), FileError> {
        match self {
            Self::InProject { project, below } => project.append_lines(below, lines),
            Self::Elsewhere(path) => named::append_lines(path, lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_on_the_way_into_the_project_are_the_persons_own_and_those_in_it_are_not() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::create_dir_all(at("project/sub")).unwrap();
        std::fs::create_dir_all(at("other")).unwrap();
        symlink(at("project/sub"), at("alias")).unwrap();
        symlink(at("other"), at("project/out")).unwrap();
        let write = |path: &str, cwd: &str| {
            let given = GivenPath::new(Path::new(path), &at(cwd), &at("project"));
            given.replace(b"x", Durability::Later).map_err(|error| error.to_string())
        };
        assert_eq!(write("a", "alias"), Ok(()));
        assert!(at("project/sub/a").is_file());
        assert_eq!(write("sub/../b", "project"), Ok(()));
        assert!(at("project/b").is_file());
        assert_eq!(write("../other/c", "project"), Ok(()));
        assert!(at("other/c").is_file());
        let refused = write("out/d", "project").unwrap_err();
        assert!(refused.contains("project/out is a symbolic link") && refused.contains("rm "), "{refused}");
        assert!(!at("other/d").exists());
        symlink(at("other/c"), at("project/e")).unwrap();
        assert!(write("e", "project").is_err());
        let device = GivenPath::new(Path::new("/dev/stdout"), Path::new("/"), Path::new("/"));
        assert_eq!(device, GivenPath::Elsewhere("/dev/stdout".into()));
        // Elsewhere, a link stays and what it leads to is replaced.
        symlink(at("project/b"), at("other/f")).unwrap();
        assert_eq!(write("../other/f", "project"), Ok(()));
        assert!(at("other/f").is_symlink());
    }
}
