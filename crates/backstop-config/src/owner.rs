//! Whose files are read: a project's file counts only if it and the repository around it belong to
//! the user who runs Backstop, as git has it with `safe.directory`.
//!
//! Otherwise whoever can write into a folder above the current one could decide what happens in it.

use super::find::{FileName, Surroundings};
use super::layers::safe_directories;
use backstop_core::shell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The key of the user's file that names folders of other users.
pub(crate) const SAFE_DIRECTORIES: &str = "trust.safe_directories";

/// A project's file that is not read, because it or its repository belongs to another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The project's file.
    pub file: FileName,
    /// What belongs to another user: the file, `.git`, or the repository's root.
    pub what: PathBuf,
    /// The other user's number.
    pub owner: u32,
    /// The folder that would have to be called safe.
    pub folder: PathBuf,
}

impl Foreign {
    /// What is ignored, and why.
    pub(crate) fn message(&self) -> String {
        format!("ignored: {}", self.whose())
    }

    /// What belongs to whom.
    pub fn whose(&self) -> String {
        format!("{} belongs to another user (uid {})", self.what.display(), self.owner)
    }

    /// The way out.
    pub fn hint(&self) -> String {
        let folder = shell::quoted(&self.folder.to_string_lossy());
        format!("if you trust its owner: `backstop config set --user {SAFE_DIRECTORIES} {folder}`")
    }
}

/// What of a project belongs to another user: its folder, its `.git`, or one of these files. For
/// what is started while nobody watches. What is not there belongs to nobody.
pub fn foreign_project(root: &Path, files: &[PathBuf], around: &Surroundings<'_>) -> Option<Foreign> {
    let inner = [root.to_owned(), root.join(".git")];
    let (what, owner) = inner.iter().chain(files).find_map(|path| {
        let owner = path.symlink_metadata().ok()?.uid();
        (!around.users.contains(&owner)).then(|| (path.clone(), owner))
    })?;
    let folder = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    if safe_directories(around).iter().any(|entry| is_safe(entry, &folder, around.home.as_deref())) {
        return None;
    }
    Some(Foreign { file: FileName::new(what.clone(), &around.cwd), what, owner, folder })
}

/// Whether a project's file is another user's. `owner` owns the file itself.
pub(crate) fn foreign(
    file: &FileName,
    owner: u32,
    root: &Path,
    in_repository: bool,
    around: &Surroundings<'_>,
    safe: &[String],
) -> Option<Foreign> {
    let mut all = vec![(file.path.clone(), Some(owner))];
    if in_repository {
        for path in [root.join(".git"), root.to_owned()] {
            let owner = path.symlink_metadata().ok().map(|found| found.uid());
            all.push((path, owner));
        }
    }
    let is_ours = |owner: Option<u32>| owner.is_some_and(|owner| around.users.contains(&owner));
    let (what, owner) = all.into_iter().find(|(_, owner)| !is_ours(*owner))?;
    if safe.iter().any(|entry| is_safe(entry, root, around.home.as_deref())) {
        return None;
    }
    let owner = owner.unwrap_or(u32::MAX);
    Some(Foreign { file: file.clone(), what, owner, folder: root.to_owned() })
}

/// Whether an entry of the list covers a folder: `*` covers all, `DIR/*` all below `DIR`.
fn is_safe(entry: &str, root: &Path, home: Option<&Path>) -> bool {
    let path = |text: &str| {
        let path = match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        };
        path.canonicalize().unwrap_or(path)
    };
    match entry.strip_suffix("/*") {
        _ if entry == "*" => true,
        Some(above) => root.starts_with(path(above)),
        None => root == path(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_is_the_folder_itself_what_is_below_a_star_or_everything() {
        let safe = |entry: &str| is_safe(entry, Path::new("/srv/shop"), Some(Path::new("/srv")));
        for entry in ["*", "/srv/shop", "/srv/shop/", "/srv/*", "/*", "~/shop"] {
            assert!(safe(entry), "{entry}");
        }
        for entry in ["/srv", "/srv/shop/sub", "shop", "", "/srv/sho*", "~"] {
            assert!(!safe(entry), "{entry}");
        }
    }
}
