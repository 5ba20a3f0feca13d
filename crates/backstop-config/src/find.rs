//! Finds and reads the configuration files, with size limits, never through a link in the project,
//! and never what belongs to another user.
//!
//! It must not parse them, nor read the environment: folders and users are arguments.

use super::error::{Place, Problem};
use super::file::FILE_BYTES_MAX;
use super::owner::{Foreign, foreign};
use backstop_core::SafeText;
use backstop_files::{FileError, FileKind, Folder, named};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = "backstop.toml";
/// The user's file, as it is shown in messages.
pub(crate) const USER_FILE: &str = "~/.config/backstop/config.toml";

/// How many characters of a path are shown.
const SHOWN_CHARS_MAX: usize = 400;

/// Where a configuration is looked for.
pub struct Surroundings<'a> {
    /// The current folder, absolute.
    pub cwd: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, if it is set.
    pub xdg_config_home: Option<PathBuf>,
    /// Looks up an environment variable. A value that is not UTF-8 must be returned with its bad
    /// bytes replaced; it is refused here.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The users whose files are read: the one whom the process runs as and, for root by `sudo`,
    /// the one who typed it.
    pub users: Vec<u32>,
    /// The state folder, whether it is there or not. Worktrees of plans are in it.
    pub state_root: Option<PathBuf>,
}

/// A file: its path, and its name in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    /// Its path.
    pub path: PathBuf,
    /// The path for messages: relative to the current folder if it is inside it, and escaped.
    pub shown: String,
}

impl FileName {
    pub(super) fn new(path: PathBuf, cwd: &Path) -> Self {
        let shown = path.strip_prefix(cwd).unwrap_or(&path).to_string_lossy().into_owned();
        Self { shown: SafeText::new(shown).line(SHOWN_CHARS_MAX), path }
    }
}

/// The path of the user's file, if it exists. A relative `$XDG_CONFIG_HOME` is ignored, as its
/// specification says.
pub fn user_file_path(around: &Surroundings<'_>) -> Option<PathBuf> {
    let xdg = around.xdg_config_home.clone().filter(|path| path.is_absolute());
    let folder = xdg.or_else(|| around.home.as_ref().map(|home| home.join(".config")))?;
    Some(folder.join("backstop").join("config.toml"))
}

/// The root of the repository around a folder: where `.git` is, as a folder or a file. Not searched
/// above the home folder.
pub fn repository_root(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let canonical_home = home.and_then(|home| home.canonicalize().ok());
    for folder in cwd.ancestors() {
        if folder.join(".git").symlink_metadata().is_ok() {
            return Some(folder.to_owned());
        }
        if Some(folder) == home || Some(folder) == canonical_home.as_deref() {
            return None;
        }
    }
    None
}

/// The repository that a worktree of a plan belongs to: what a phase does in its slot, it does in
/// its project. `root` is a slot if it is in the state folder, and the repository knows it.
pub fn repository_of_slot(root: &Path, state_root: Option<&Path>) -> Option<PathBuf> {
    let state = state_root?.canonicalize().ok()?;
    let slot = root.canonicalize().ok().filter(|root| root.starts_with(state))?;
    // gitdir: /repository/.git/worktrees/slot-1
    let linked = small_file(&slot.join(".git"))?;
    let git_dir = Path::new(linked.strip_prefix("gitdir: ")?.trim());
    let common = git_dir.parent()?.parent()?;
    let repository = common.parent().filter(|_| common.ends_with(".git"))?.canonicalize().ok()?;
    // The repository names the slot, too: a file in a folder cannot choose whose worktree it is.
    let back = small_file(&git_dir.join("gitdir"))?;
    let known = Path::new(back.trim()).canonicalize().ok()?;
    (known == slot.join(".git")).then_some(repository)
}

/// The text of a file that git writes, which holds one path.
fn small_file(path: &Path) -> Option<String> {
    /// No path is longer.
    const PATH_BYTES_MAX: u64 = 8 << 10;
    let mut text = String::new();
    named::open(path).ok()?.take(PATH_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The project's file as it was read. The same bytes are hashed and parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    /// The file.
    pub file: FileName,
    /// Its canonical path.
    pub canonical: PathBuf,
    /// The canonical path of the repository's root, else of the folder that the file is in.
    pub root: PathBuf,
    /// The root under which trust is recorded: `root`, or the repository of a plan's worktree.
    pub trust_root: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether every user may write it.
    pub writable_by_all: bool,
}

impl ProjectFile {
    /// The path under which a file of the project is trusted. A worktree of a plan has the paths of
    /// its repository: the same content is trusted in both.
    pub(crate) fn trust_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).map_or_else(|_| path.to_owned(), |below| self.trust_root.join(below))
    }

    /// The repository, if the file is in a worktree of a plan.
    pub(crate) fn repository_of_slot(&self) -> Option<&Path> {
        Some(&*self.trust_root).filter(|root| *root != self.root)
    }
}

/// Why a project's file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Something is wrong with it.
    Problem(Problem),
    /// It, or the repository around it, belongs to another user.
    Foreign(Foreign),
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Problem(problem) => problem,
            Unread::Foreign(foreign) => {
                let (message, hint) = (foreign.message(), foreign.hint());
                Problem::new(Place::File(foreign.file), &message, Some(&hint))
            }
        }
    }
}

/// The project's file: the nearest one between the current folder and the root of the repository;
/// without a repository, only the current folder's. `safe` are the folders of other users that are
/// read all the same.
pub(crate) fn project_file(
    around: &Surroundings<'_>,
    safe: &[String],
) -> Result<Option<ProjectFile>, Unread> {
    let repository = repository_root(&around.cwd, around.home.as_deref());
    let root = repository.clone().unwrap_or_else(|| around.cwd.clone());
    let within = around.cwd.ancestors().take_while(|folder| folder.starts_with(&root));
    for folder in within {
        let file = FileName::new(folder.join(PROJECT_FILE), &around.cwd);
        match file.path.symlink_metadata() {
            Ok(_) => return project_file_at(file, &root, repository.is_some(), around, safe),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(Unread::Problem(unreadable(&file, &error))),
        }
    }
    Ok(None)
}

fn project_file_at(
    file: FileName,
    root: &Path,
    in_repository: bool,
    around: &Surroundings<'_>,
    safe: &[String],
) -> Result<Option<ProjectFile>, Unread> {
    let canonical_root = root.canonicalize().map_err(|error| Unread::Problem(unreadable(&file, &error)))?;
    let below = file.path.strip_prefix(root).unwrap_or(Path::new(PROJECT_FILE)).to_owned();
    let opened = match Folder::new(&canonical_root).open(&below) {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(Unread::Problem(refused(&file, error))),
    };
    let found = opened.metadata().map_err(|error| Unread::Problem(unreadable(&file, &error)))?;
    if let Some(foreign) = foreign(&file, found.uid(), &canonical_root, in_repository, around, safe) {
        return Err(Unread::Foreign(foreign));
    }
    let (bytes, writable_by_all) = content(&file, opened).map_err(Unread::Problem)?;
    let canonical = canonical_root.join(below);
    let slot_of = repository_of_slot(&canonical_root, around.state_root.as_deref());
    let trust_root = slot_of.unwrap_or_else(|| canonical_root.clone());
    Ok(Some(ProjectFile { file, canonical, root: canonical_root, trust_root, bytes, writable_by_all }))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(file: &FileName, error: &std::io::Error) -> Problem {
    let hint = "check that you may read it, and the folders above it";
    Problem::new(Place::File(file.clone()), &format!("cannot be read: {error}"), Some(hint))
}

/// The words for a file that was not opened.
fn refused(file: &FileName, error: FileError) -> Problem {
    let problem = |message: &str, hint: &str| Problem::new(Place::File(file.clone()), message, Some(hint));
    match error {
        FileError::Refused { kind: FileKind::Link, .. } => {
            let hint = format!("put the file itself there, or what you want everywhere into {USER_FILE}");
            problem("a link, or in a folder that is one; it is not read", &hint)
        }
        FileError::Io { source, .. } => unreadable(file, &source),
        _ => problem("not a file", "remove it, or put a file in its place"),
    }
}

/// The content of the user's own file, and whether every user may write it. `None` if there is no
/// file.
pub(super) fn bytes(file: &FileName, path: &Path) -> Result<Option<(Vec<u8>, bool)>, Problem> {
    match named::open(path) {
        Ok(opened) => content(file, opened).map(Some),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(refused(file, error)),
    }
}

fn content(file: &FileName, opened: File) -> Result<(Vec<u8>, bool), Problem> {
    let mut bytes = Vec::new();
    let writable = opened.metadata().is_ok_and(|found| found.permissions().mode() & 0o002 != 0);
    let read = opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(file, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("larger than {FILE_BYTES_MAX} bytes, which no config is");
        return Err(Problem::new(Place::File(file.clone()), &message, Some("check what wrote it")));
    }
    Ok((bytes, writable))
}
