//! Finds and reads the configuration files, with size limits, and never from outside the project.
//!
//! It must not parse them, nor read the environment: folders are arguments.

use super::error::{Place, Problem};
use super::file::FILE_BYTES_MAX;
use backstop_core::SafeText;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
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
pub(crate) fn user_file_path(around: &Surroundings<'_>) -> Option<PathBuf> {
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

/// The project's file as it was read. The same bytes are hashed and parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    /// The file.
    pub file: FileName,
    /// Its canonical path.
    pub canonical: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether every user may write it.
    pub writable_by_all: bool,
}

/// The project's file: the nearest one between the current folder and the root of the repository;
/// without a repository, only the current folder's.
pub(crate) fn project_file(around: &Surroundings<'_>) -> Result<Option<ProjectFile>, Problem> {
    let root = repository_root(&around.cwd, around.home.as_deref()).unwrap_or_else(|| around.cwd.clone());
    let within = around.cwd.ancestors().take_while(|folder| folder.starts_with(&root));
    for folder in within {
        let file = FileName::new(folder.join(PROJECT_FILE), &around.cwd);
        match file.path.symlink_metadata() {
            Ok(_) => return project_file_at(file, &root),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(unreadable(&file, &error)),
        }
    }
    Ok(None)
}

fn project_file_at(file: FileName, root: &Path) -> Result<Option<ProjectFile>, Problem> {
    let canonical = match file.path.canonicalize() {
        Ok(canonical) => canonical,
        Err(error) if is_absent(&error) => {
            let hint = "remove it, or make what it leads to";
            return Err(Problem::new(Place::File(file), "a link that leads nowhere", Some(hint)));
        }
        Err(error) => return Err(unreadable(&file, &error)),
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    if !canonical.starts_with(&root) {
        let message = "a link that leads out of the project; it is not read";
        let hint = format!("put the file itself there, or what you want everywhere into {USER_FILE}");
        return Err(Problem::new(Place::File(file), message, Some(&hint)));
    }
    // The path that was checked is the one that is opened.
    let read = bytes(&file, &canonical)?;
    Ok(read.map(|(bytes, writable_by_all)| ProjectFile { file, canonical, bytes, writable_by_all }))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(file: &FileName, error: &std::io::Error) -> Problem {
    let hint = "check that you may read it, and the folders above it";
    Problem::new(Place::File(file.clone()), &format!("cannot be read: {error}"), Some(hint))
}

/// The content of a file, and whether every user may write it. `None` if there is no file.
pub(super) fn bytes(file: &FileName, path: &Path) -> Result<Option<(Vec<u8>, bool)>, Problem> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(file, &error)),
    };
    let refused = |message: &str, hint: &str| Problem::new(Place::File(file.clone()), message, Some(hint));
    // Reading a pipe would block, and a device has no end.
    if !metadata.is_file() {
        return Err(refused("not a file", "remove it, or put a file in its place"));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(file, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("larger than {FILE_BYTES_MAX} bytes, which no config is");
        return Err(refused(&message, "check what wrote it"));
    }
    Ok(Some((bytes, metadata.permissions().mode() & 0o002 != 0)))
}
