//! A control group of its own for the processes of a command, where we may make one: below our own
//! group of the second version, if that was delegated to us.
//!
//! A reaper finds what a command has started by descent. A group finds it although the reaper
//! itself was killed, whatever the processes did to their sessions, parents and environments, and
//! ends all of it at once. Where none can be had (most containers, the first version, a session
//! that is root's) nothing changes: the reaper does its work alone. Whatever goes wrong here is
//! silent.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where groups of the second version are.
const ROOT: &str = "/sys/fs/cgroup";
/// What the names of our groups begin with.
const PREFIX: &str = "backstop-";
/// How many digits of the hash of a mark are part of a name.
const TAG_DIGITS: usize = 24;
/// The variables that mark the processes of a command.
const MARKS: [&str; 2] = ["BACKSTOP_RUN_MARK", "BACKSTOP_UPSTREAM_MARK"];
/// How often the removal of a group is tried: its last process may be ending.
const REMOVE_TRIES: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(1);
/// How deep and how many groups are looked at for what was left.
const DEPTH_MAX: usize = 12;
const GROUPS_MAX: usize = 8192;

/// The group of one command. Dropping it ends what is left in it and removes it.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group for a command with these variables, and opens the file that a process enters
    /// it by.
    pub(crate) fn make(env: &[(OsString, OsString)]) -> Option<(Self, OwnedFd)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mark = env.iter().rev().find(|(name, _)| MARKS.iter().any(|mark| name == mark))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}", prefix(mark.1.to_str()?), std::process::id());
        let path = delegated()?.join(name);
        std::fs::create_dir(&path).ok()?;
        let group = Self { path };
        let entry = std::fs::OpenOptions::new().write(true).open(group.path.join("cgroup.procs")).ok()?;
        Some((group, OwnedFd::from(entry)))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        end(&self.path);
    }
}

/// Ends what is in a group and removes it, with the groups below it.
fn end(group: &Path) {
    // Before Linux 5.14 there is no such file: the reaper has ended its processes.
    let _ = std::fs::write(group.join("cgroup.kill"), "1");
    for _ in 0..REMOVE_TRIES {
        for below in below(group, 1).into_iter().rev() {
            let _ = std::fs::remove_dir(below);
        }
        match std::fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(REMOVE_PAUSE),
            _ => return,
        }
    }
}

/// What the names of the groups of a mark begin with.
fn prefix(mark: &str) -> String {
    let hash = backstop_core::Sha256::of(mark).hex();
    format!("{PREFIX}{}-", hash.get(..TAG_DIGITS).unwrap_or(&hash))
}

/// The groups that a killed Backstop left for the commands of a mark.
#[derive(Debug, Default)]
pub(crate) struct LeftGroups(Vec<PathBuf>);

impl LeftGroups {
    pub(crate) fn of(mark: &str) -> Self {
        if !Path::new(ROOT).join("cgroup.controllers").exists() {
            return Self::default();
        }
        let prefix = prefix(mark);
        let is_its = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix.as_str()))
        };
        Self(below(Path::new(ROOT), DEPTH_MAX).into_iter().filter(is_its).collect())
    }

    /// The processes in them, and in the groups below.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let all = self.0.iter().flat_map(|group| {
            let mut all = below(group, DEPTH_MAX);
            all.push(group.clone());
            all
        });
        let read = |group: PathBuf| std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        let lines = all.map(read).collect::<Vec<_>>().join("\n");
        lines.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Removes them; what is still in them is ended.
    pub(crate) fn remove(&self) {
        self.0.iter().for_each(|group| end(group));
    }
}

/// The groups below one, those above before those below them.
fn below(group: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![group.to_owned()];
    for _ in 0..depth {
        let entries = level.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        level = folders.map(|entry| entry.path()).take(GROUPS_MAX.saturating_sub(found.len())).collect();
        found.extend(level.iter().cloned());
    }
    found
}

/// Our own group, where we may make others below it.
fn delegated() -> Option<&'static Path> {
    static OURS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let root = Path::new(ROOT);
        if !root.join("cgroup.controllers").exists() {
            return None;
        }
        let name = own_name(&std::fs::read_to_string("/proc/self/cgroup").ok()?)?;
        let path = root.join(name.trim_start_matches('/'));
        let may_write = rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).is_ok();
        let is_root = rustix::process::geteuid().is_root();
        (may_write && (!is_root || is_given_to_root(&name, &path))).then_some(path)
    };
    OURS.get_or_init(find).as_deref()
}

/// The name of the group of the second version in `/proc/PID/cgroup`.
fn own_name(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// Root may write everywhere; groups belong to whoever manages them unless they are the whole of a
/// container, one of ours, or marked as delegated.
fn is_given_to_root(name: &str, path: &Path) -> bool {
    let is_ours = name.rsplit('/').next().is_some_and(|last| last.starts_with(PREFIX));
    let is_marked = |attribute: &str| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(path, attribute, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    name == "/" || is_ours || is_marked("trusted.delegate") || is_marked("user.delegate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_second_version_is_found_among_those_of_the_first() {
        let text = "9:name=systemd:/\n4:memory:/a\n0::/user.slice/app.scope\n";
        assert_eq!(own_name(text).as_deref(), Some("/user.slice/app.scope"));
        assert_eq!(own_name("4:memory:/a\n"), None);
    }

    #[test]
    fn root_makes_groups_only_where_they_were_given_to_it() {
        let nowhere = Path::new("/nowhere");
        assert!(is_given_to_root("/", nowhere));
        assert!(is_given_to_root("/a/backstop-0123-7-1", nowhere));
        assert!(!is_given_to_root("/system.slice/ssh.service", nowhere));
    }

    #[test]
    fn the_groups_of_two_marks_have_different_names() {
        assert_ne!(prefix("r-1 2 3"), prefix("r-1 2 4"));
        assert!(prefix("r-1").starts_with(PREFIX) && prefix("r-1").ends_with('-'));
    }
}
