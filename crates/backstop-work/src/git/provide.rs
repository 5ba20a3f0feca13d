//! What a fresh worktree lacks and the work needs: `.env`, `node_modules`. Linked or copied from
//! the user's tree.
//!
//! Only paths below the root are taken, nothing that is there is replaced, and nothing provided is
//! ever saved: what git does not track it does not get from here.

use super::{GitError, Repo, Slot};
use backstop_core::SafeText;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// How many files and folders one copy may have.
const COPY_ENTRIES_MAX: usize = 200_000;
/// How deep folders may be inside each other.
const COPY_DEPTH_MAX: usize = 64;
/// The name of a copy that is not complete yet.
const PARTIAL: &str = ".backstop-partial";

/// What became of one path that was to be provided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// The path, as it was given.
    pub path: SafeText,
    /// What became of it.
    pub how: ProvidedHow,
}

/// What became of a path that was to be provided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvidedHow {
    /// It is a link to the user's.
    Linked,
    /// It is a copy of the user's.
    Copied,
    /// Something was there already, and stays.
    WasThere,
    /// Git tracks it: it comes with the commit, and changes to it are saved.
    Tracked,
    /// The user has none.
    Missing,
    /// It is not a path below the root.
    NotBelow,
    /// It could not be done.
    Failed(SafeText),
}

impl Slot {
    /// Links and copies paths from another folder into the slot. Whatever is provided is excluded
    /// from then on.
    pub fn provide(
        &mut self,
        from: &Path,
        link: &[String],
        copy: &[String],
    ) -> Result<Vec<Provided>, GitError> {
        let mut notes = Vec::new();
        for (given, linked) in link.iter().map(|p| (p, true)).chain(copy.iter().map(|p| (p, false))) {
            let how = self.provide_one(from, given, linked)?;
            notes.push(Provided { path: SafeText::from(given.as_str()), how });
        }
        Ok(notes)
    }

    fn provide_one(&mut self, from: &Path, given: &str, linked: bool) -> Result<ProvidedHow, GitError> {
        let Some(path) = below(given) else { return Ok(ProvidedHow::NotBelow) };
        let tracked = self.call().args(["ls-files", "-z", "--"]).arg(&path).literal().read_only().done()?;
        if !tracked.stdout.is_empty() {
            return Ok(ProvidedHow::Tracked);
        }
        let (source, target) = (from.join(&path), self.path.join(&path));
        if source.symlink_metadata().is_err() {
            return Ok(ProvidedHow::Missing);
        }
        if !self.exclude.contains(&path) {
            self.exclude.push(path.clone());
            self.indexes().excluded_at = None;
        }
        self.provided.push((target.clone(), source.clone()));
        if target.symlink_metadata().is_ok() {
            return Ok(ProvidedHow::WasThere);
        }
        let done = folders_to(&self.path, &path).and_then(|()| {
            if linked { std::os::unix::fs::symlink(&source, &target) } else { copy_whole(&source, &target) }
        });
        Ok(match (done, linked) {
            (Ok(()), true) => ProvidedHow::Linked,
            (Ok(()), false) => ProvidedHow::Copied,
            (Err(error), _) => ProvidedHow::Failed(SafeText::new(error.to_string())),
        })
    }

    /// Removes what was provided and is still as it was. What differs stays, and keeps the slot
    /// from being removed.
    pub(crate) fn remove_provided(&self) {
        for (target, source) in &self.provided {
            let ours = match std::fs::read_link(target) {
                Ok(leads_to) => leads_to == *source || std::fs::read_link(source).ok() == Some(leads_to),
                Err(_) => same_file(target, source).unwrap_or(false),
            };
            if ours {
                // What cannot be removed is found by git, which then keeps the slot.
                let _ = std::fs::remove_file(target);
            }
        }
    }
}

impl Repo {
    /// What paths of the repository's root that are provided as links lead to.
    pub fn sources(&self, link: &[String]) -> Vec<PathBuf> {
        link.iter().filter_map(|given| below(given)).map(|path| self.root().join(path)).collect()
    }
}

/// A path below a root, without any step upwards or into git's own folder.
fn below(given: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(given).components() {
        match component {
            Component::Normal(name) if !name.eq_ignore_ascii_case(".git") => path.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!path.as_os_str().is_empty() && !given.contains('\0')).then_some(path)
}

/// Makes the folders that lead to a path. None of them may be a link: it could lead anywhere.
fn folders_to(root: &Path, path: &Path) -> std::io::Result<()> {
    let mut folder = root.to_owned();
    for part in path.parent().unwrap_or(Path::new("")).components() {
        folder.push(part);
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(std::io::Error::other("a folder on the way is not a folder")),
            Err(error) if error.kind() == ErrorKind::NotFound => std::fs::create_dir(&folder)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies under another name first, so that a crash leaves nothing that looks whole.
fn copy_whole(source: &Path, target: &Path) -> std::io::Result<()> {
    let mut partial = target.to_owned().into_os_string();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    match partial.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&partial)?,
        Ok(_) => std::fs::remove_file(&partial)?,
        Err(_) => {}
    }
    copy(source, &partial, &mut 0, 0)?;
    std::fs::rename(&partial, target)
}

fn copy(source: &Path, target: &Path, entries: &mut usize, depth: usize) -> std::io::Result<()> {
    *entries += 1;
    if *entries > COPY_ENTRIES_MAX || depth > COPY_DEPTH_MAX {
        return Err(std::io::Error::other("it has too many files or is too deep to be copied: link it"));
    }
    let found = source.symlink_metadata()?;
    if found.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(source)?, target);
    }
    if found.is_file() {
        return std::fs::copy(source, target).map(|_| ());
    }
    if !found.is_dir() {
        // Sockets and pipes are of no use to anybody else.
        return Ok(());
    }
    std::fs::create_dir(target)?;
    for entry in std::fs::read_dir(source)? {
        let name = entry?.file_name();
        copy(&source.join(&name), &target.join(&name), entries, depth + 1)?;
    }
    std::fs::set_permissions(target, found.permissions())
}

fn same_file(one: &Path, other: &Path) -> std::io::Result<bool> {
    let (a, b) = (one.symlink_metadata()?, other.symlink_metadata()?);
    if !a.is_file() || !b.is_file() || a.len() != b.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (std::fs::File::open(one)?, std::fs::File::open(other)?);
    let (mut x, mut y) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let n = a.read(&mut x)?;
        if n == 0 {
            return Ok(true);
        }
        b.read_exact(&mut y[..n])?;
        if x[..n] != y[..n] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_root_are_taken() {
        for (given, expected) in [
            (".env", Some(".env")),
            ("./a//b/", Some("a/b")),
            ("../x", None),
            ("a/../../x", None),
            ("/etc/passwd", None),
            (".git/config", None),
            ("sub/.GIT/hooks", None),
            ("", None),
            (".", None),
            ("a\0b", None),
        ] {
            assert_eq!(below(given), expected.map(PathBuf::from), "{given}");
        }
    }
}
