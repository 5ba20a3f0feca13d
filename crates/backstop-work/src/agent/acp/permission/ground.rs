//! The folders in which an agent may work, and whether a path leads out of them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

/// How many paths of one request are looked at.
const PATHS_MAX: usize = 2000;
/// How many links are followed on the way to a file; a kernel follows as many.
const LINKS_MAX: usize = 40;
/// Where output is thrown away or shown, and where input comes from that is no file.
const SINKS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/fd",
    "/dev/random",
    "/dev/urandom",
];
/// Folders at the root of a file system: a text that begins with one of them is a path, and
/// `/api/v1` is none.
const TOP_FOLDERS: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
];

/// Where a path leads, links on the way followed. The conversation is given it, because it does no
/// I/O itself.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Resolver(pub(in super::super) fn(&Path) -> PathBuf);

impl Default for Resolver {
    fn default() -> Self {
        Self(lexical)
    }
}

/// The folders of one request.
pub(super) struct Ground {
    /// The agent's own folder.
    pub(super) cwd: PathBuf,
    folders: Vec<PathBuf>,
    resolver: Resolver,
    paths_left: Cell<usize>,
    /// Whether there was more than was looked at.
    pub(super) is_cut: Cell<bool>,
}

impl Ground {
    pub(super) fn new(folders: &[PathBuf], resolver: Resolver) -> Option<Self> {
        let folders: Vec<PathBuf> = folders.iter().map(|folder| (resolver.0)(folder)).collect();
        let cwd = folders.first()?.clone();
        Some(Self { cwd, folders, resolver, paths_left: Cell::new(PATHS_MAX), is_cut: Cell::new(false) })
    }

    /// Where a path leads that is outside of the folders; nothing where it stays inside.
    pub(super) fn outside(&self, from: &Path, path: &str) -> Option<PathBuf> {
        let Some(left) = self.paths_left.get().checked_sub(1) else {
            self.is_cut.set(true);
            return None;
        };
        self.paths_left.set(left);
        // A home folder is outside, whosever it is.
        if path.starts_with(['~']) || path.starts_with("$HOME") || path.starts_with("${HOME}") {
            return Some(PathBuf::from(path));
        }
        let full = self.resolve(from, path);
        let is_inside = self.folders.iter().any(|folder| full.starts_with(folder));
        let is_sink = SINKS.iter().any(|sink| full.starts_with(sink) || Path::new(path).starts_with(sink));
        (!is_inside && !is_sink).then_some(full)
    }

    /// Where a path leads.
    pub(super) fn resolve(&self, from: &Path, path: &str) -> PathBuf {
        let own = ["$PWD", "${PWD}"].iter().find_map(|name| path.strip_prefix(name));
        let own = own.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        (self.resolver.0)(&match own {
            Some(rest) => from.join(rest.trim_start_matches('/')),
            None => from.join(path),
        })
    }

    /// Whether an absolute path begins as paths of a machine do.
    pub(super) fn is_plausible(&self, path: &str) -> bool {
        let mut parts = Path::new(path).components();
        let top = parts.by_ref().find_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        });
        let is_ours = |name: &std::ffi::OsStr| {
            self.folders.iter().any(|folder| folder.iter().nth(1).is_some_and(|first| first == name))
        };
        top.is_some_and(|name| TOP_FOLDERS.iter().any(|top| name == *top) || is_ours(&name))
    }
}

/// A path without `.` and `..`, without a look at the disk.
fn lexical(path: &Path) -> PathBuf {
    walked(path, |_| None)
}

/// Where a path leads on this machine. What it names need not be there yet.
pub(in super::super) fn on_disk(path: &Path) -> PathBuf {
    walked(path, |place| std::fs::read_link(place).ok())
}

/// Where a path leads, part by part as a kernel goes. `link` gives what a link says.
pub(super) fn walked(path: &Path, link: impl Fn(&Path) -> Option<PathBuf>) -> PathBuf {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let mut left: VecDeque<_> = parts(path).into();
    let (mut out, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                out.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(_) => {
                out.push(&part);
                if let Some(target) = link(&out).filter(|_| links < LINKS_MAX) {
                    links += 1;
                    out.pop();
                    parts(&target).into_iter().rev().for_each(|part| left.push_front(part));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_as_a_kernel_follows_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        link("a/b", "short");
        link("/etc", "etc");
        link("round", "round");
        link("../nowhere/yet", "a/dangling");
        for (path, want) in [
            ("short/x", root.join("a/b/x")),
            ("short/../x", root.join("a/x")),
            ("etc/passwd", PathBuf::from("/etc/passwd")),
            ("etc/../x", PathBuf::from("/x")),
            ("a/dangling", root.join("nowhere/yet")),
            ("not/there/../yet", root.join("not/yet")),
            ("round", root.join("round")),
        ] {
            assert_eq!(on_disk(&root.join(path)), want, "{path}");
        }
    }
}
