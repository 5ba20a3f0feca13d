//! A fingerprint of a project's files, so that a failure that repeats can be told from one that was
//! worked on in between.
//!
//! Names, sizes, modes and modification times are looked at, no content; nothing is run. What tools
//! write by themselves (caches, build output) does not count.

use backstop_files::named;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A project with more files and folders than this has no fingerprint: it would take too long.
const ENTRIES_MAX: usize = 50_000;
/// How deep folders are walked.
const DEPTH_MAX: usize = 64;
/// How deep the folders of installed packages are looked at: deep enough for
/// `.venv/lib/python3.13/site-packages`.
const PACKAGES_DEPTH_MAX: usize = 4;

/// Folders that tools fill by themselves.
const IGNORED: &[&str] = &[
    ".backstop",
    ".cache",
    ".git",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nyc_output",
    ".pytest_cache",
    ".ruff_cache",
    ".turbo",
    "__pycache__",
    "coverage",
    "target",
];
/// Folders of installed packages: what is installed or removed changes folders, so only those are
/// looked at.
const PACKAGES: &[&str] = &["node_modules", ".venv", "venv", ".tox", "vendor", "site-packages"];

/// The fingerprint of the files below a folder, and of where its repository stands. `None` if there
/// are too many files, or none can be read.
pub(super) fn of(root: &Path) -> Option<String> {
    of_at_most(root, ENTRIES_MAX)
}

fn of_at_most(root: &Path, entries_max: usize) -> Option<String> {
    let mut seen = 0_usize;
    // The order in which a folder lists its entries says nothing: their hashes are added up.
    let mut sum = head(root);
    let mut folders = VecDeque::from([(PathBuf::new(), 0, None)]);
    while let Some((folder, depth, packages_depth)) = folders.pop_front() {
        let entries = match std::fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(_) if depth == 0 => return None,
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            seen += 1;
            if seen > entries_max {
                return None;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && IGNORED.contains(&&*name) {
                continue;
            }
            if packages_depth.is_some() && !kind.is_dir() {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let path = folder.join(entry.file_name());
            // A folder's own time changes with its entries, which are counted themselves, and with
            // the caches in it, which are not.
            let time = if kind.is_dir() && packages_depth.is_none() {
                (0, 0)
            } else {
                (meta.mtime(), meta.mtime_nsec())
            };
            let size = if kind.is_dir() { 0 } else { meta.len() };
            sum = sum.wrapping_add(hash(&(&path, size, meta.mode(), time)));
            if kind.is_dir() && depth < DEPTH_MAX {
                let below = match packages_depth {
                    None => PACKAGES.contains(&&*name).then_some(0),
                    Some(depth) => Some(depth + 1),
                };
                if below.is_none_or(|depth| depth < PACKAGES_DEPTH_MAX) {
                    folders.push_back((path, depth + 1, below));
                }
            }
        }
    }
    Some(format!("{sum:016x}"))
}

/// The most that is read of a `.git` that is a file, in bytes.
const GIT_FILE_BYTES_MAX: u64 = 8 << 10;

/// Where the repository stands: its log of commits and checkouts.
fn head(root: &Path) -> u64 {
    let git = root.join(".git");
    let folder = match named::read(&git, GIT_FILE_BYTES_MAX) {
        // A worktree has a file that names its folder.
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            root.join(text.trim().strip_prefix("gitdir: ").unwrap_or(".git"))
        }
        Err(_) => git,
    };
    let of = |name: &str| {
        let meta = std::fs::symlink_metadata(folder.join(name)).ok()?;
        Some((meta.len(), meta.mtime(), meta.mtime_nsec()))
    };
    hash(&(of("HEAD"), of("logs/HEAD")))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_changes_it_and_caches_do_not() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("src/a.rs", "one");
        write("target/debug/x", "1");
        write("node_modules/a/index.js", "1");
        write(".git/HEAD", "ref: refs/heads/main\n");
        let mut last = of(temp.path()).unwrap();
        let mut changes = |what: &str, want: bool| {
            let now = of(temp.path()).unwrap();
            assert_eq!(now != last, want, "{what}");
            last = now;
        };
        changes("nothing", false);
        write("src/a.rs", "two2");
        changes("a source", true);
        write("src/deep/b.rs", "");
        changes("a new file", true);
        std::fs::remove_file(temp.path().join("src/deep/b.rs")).unwrap();
        changes("a removed file", true);
        write("target/debug/y", "1");
        write("src/__pycache__/a.pyc", "1");
        write(".pytest_cache/x", "1");
        write(".backstop/log", "1");
        changes("caches", false);
        write("node_modules/b/index.js", "1");
        changes("an installed package", true);
        write(".git/HEAD", "ref: refs/heads/other\n");
        changes("another branch", true);
    }

    #[test]
    fn a_project_that_is_too_large_has_none() {
        let temp = tempfile::tempdir().unwrap();
        for n in 0..5 {
            std::fs::write(temp.path().join(n.to_string()), "").unwrap();
        }
        assert!(of_at_most(temp.path(), 5).is_some());
        assert_eq!(of_at_most(temp.path(), 4), None);
        assert_eq!(of(&temp.path().join("none")), None);
    }
}
