//! Processes and their descendants.
//!
//! A process is identified by its pid and its start time: a pid alone may have been reused.

use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
#[cfg(target_os = "linux")]
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

/// A process, by pid and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot; 0 where the system does not report it.
    pub start: u64,
}

impl Process {
    /// The process with this pid, if there is one.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        Some(Self { pid, start: stat.start })
    }

    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self::find(pid).unwrap_or(Self { pid, start: 0 })
    }

    /// Whether the process still runs, and the pid was not reused.
    pub fn is_alive(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.start == self.start && !stat.is_dead())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = pid(self.pid) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

pub(crate) fn pid(raw: u32) -> Option<Pid> {
    i32::try_from(raw).ok().filter(|p| *p > 1).and_then(Pid::from_raw)
}

/// The number of a process's group; 0 where the group's leader is outside our pid namespace, as in
/// a container. `rustix::process::getpgid` has no value for that.
pub(crate) fn group_of(process: u32) -> Option<i32> {
    let raw = libc::pid_t::try_from(process).ok()?;
    // SAFETY: numbers go in and come out.
    Some(unsafe { libc::getpgid(raw) }).filter(|group| *group >= 0)
}

/// The number of a process's session; 0 as in [`group_of`].
pub(crate) fn session_of(process: u32) -> Option<i32> {
    let raw = libc::pid_t::try_from(process).ok()?;
    // SAFETY: numbers go in and come out.
    Some(unsafe { libc::getsid(raw) }).filter(|session| *session >= 0)
}

/// Our own process group, unless its leader is outside our pid namespace.
pub(crate) fn own_group() -> Option<Pid> {
    group_of(std::process::id()).and_then(Pid::from_raw)
}

/// The longest description of a process that is read: 52 numbers and a name. It is given at once.
#[cfg(target_os = "linux")]
const STAT_BYTES_MAX: usize = 2048;

/// The state of a process as the system reports it.
#[derive(Debug)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) start: u64,
}

impl Stat {
    #[cfg(target_os = "linux")]
    pub(crate) fn read(pid: u32) -> Option<Self> {
        let mut text = [0; STAT_BYTES_MAX];
        let read = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
        let text = text.get(..read)?;
        // The name is in brackets and may itself contain brackets.
        let open = memchr::memchr(b'(', text)?;
        let close = memchr::memrchr(b')', text)?;
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.bytes().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self {
            name: String::from_utf8_lossy(text.get(open + 1..close)?).into_owned(),
            state,
            parent,
            group,
            start,
        })
    }

    /// Without /proc, only whether the process exists is known.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read(raw: u32) -> Option<Self> {
        rustix::process::test_kill_process(pid(raw)?).ok()?;
        Some(Self { name: String::new(), state: b'R', parent: 0, group: 0, start: 0 })
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// The children of a process, zombies too.
#[cfg(target_os = "linux")]
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return found };
    for task in tasks.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|p| p.parse::<u32>().ok())),
            // A task that has just ended, or a kernel without these lists: scan all processes
            // instead.
            Err(_) if task.path().exists() => return children_by_scan(parent),
            Err(_) => {}
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn children_by_scan(parent: u32) -> Vec<u32> {
    all().into_iter().filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn children(_: u32) -> Vec<u32> {
    Vec::new()
}

/// The pid namespace of this process; 0 where the system has none. Processes of another namespace
/// cannot be checked.
pub fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino())
}

/// Every process on this machine that is visible to us.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process was started with this variable in its environment.
pub(crate) fn has_variable(pid: u32, name: &OsStr, value: &OsStr) -> bool {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let want = [name.as_bytes(), b"=", value.as_bytes()].concat();
    environ.split(|b| *b == 0).any(|entry| entry == want)
}

/// Whether a process has a handler for a signal. False where that is not known.
pub(crate) fn catches(pid: u32, signal: i32) -> bool {
    has_signal(pid, "SigCgt:", signal)
}

/// Whether a signal is in one of the sets that a process's status shows.
fn has_signal(pid: u32, set: &str, signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix(set));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signal > 0 && mask >> (signal - 1) & 1 == 1
}

/// Whether what descends from us in our process group ignores a signal, and nothing of it has a
/// handler for it.
pub(crate) fn is_ignored_below_us(signal: i32) -> bool {
    let us = std::process::id();
    let ours = group_of(us);
    let below: Vec<u32> =
        with_descendants(vec![us]).into_iter().filter(|pid| *pid != us && group_of(*pid) == ours).collect();
    below.iter().any(|pid| has_signal(*pid, "SigIgn:", signal))
        && !below.iter().any(|pid| catches(*pid, signal))
}

/// Whether `pid` is `ancestor` or one of its descendants.
pub(crate) fn is_below(mut pid: u32, ancestor: u32) -> bool {
    for _ in 0..1000 {
        if pid == ancestor {
            return true;
        }
        match Stat::read(pid) {
            Some(stat) if stat.parent > 1 => pid = stat.parent,
            _ => return false,
        }
    }
    false
}

/// Every process that was started with all of these variables.
pub(crate) fn marked(marks: &[(OsString, OsString)]) -> Vec<u32> {
    let has_all = |pid: &u32| marks.iter().all(|(name, value)| has_variable(*pid, name, value));
    if marks.is_empty() { Vec::new() } else { all().into_iter().filter(has_all).collect() }
}

/// These processes and everything below them.
pub(crate) fn with_descendants(mut found: Vec<u32>) -> Vec<u32> {
    let mut at = 0;
    while at < found.len() {
        for child in children(found[at]) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        at += 1;
    }
    found
}

/// A command and all its descendants.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The command.
    pub(crate) root: Process,
    /// The process that adopts the command's orphans and nobody else's: its reaper. The command
    /// itself, where it starts no other program or has no reaper on this system.
    pub(crate) top: u32,
    /// The command's process group.
    pub(crate) group: Option<Pid>,
    /// The environment variables that its processes were started with: all that is known of them if
    /// the reaper was killed.
    pub(crate) marks: Vec<(OsString, OsString)>,
}

impl Tree {
    /// All living processes of the command, itself included unless it was reaped.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let first = if self.top == self.root.pid || self.is_top_gone() {
            let root = Some(self.root.pid).filter(|_| self.root.is_alive());
            root.into_iter().chain(marked(&self.marks)).collect()
        } else {
            children(self.top)
        };
        let mut found = with_descendants(first);
        found.retain(|pid| Stat::read(*pid).is_some_and(|stat| !stat.is_dead()));
        found
    }

    /// Whether the command is stopped now.
    pub(crate) fn is_root_stopped(&self) -> bool {
        Stat::read(self.root.pid).is_some_and(|stat| stat.state == b'T')
    }

    /// Whether its reaper was killed: then the system has adopted its orphans.
    fn is_top_gone(&self) -> bool {
        cfg!(target_os = "linux") && Stat::read(self.top).is_none_or(|stat| stat.is_dead())
    }

    /// Kills every process found in one look, for commands that fork faster than repeated looks
    /// find. Returns whether there was any, alive or just ended.
    pub(crate) fn strike(&self) -> bool {
        let mut met = false;
        for raw in children(self.top) {
            if let Some(found) = pid(raw) {
                let _ = rustix::process::kill_process(found, Signal::KILL);
            }
            met |= raw != self.root.pid;
        }
        met
    }

    /// Sends a signal to every process of the command once, and returns their pids.
    pub(crate) fn signal(&self, signal: Signal) -> Vec<u32> {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        let alive = self.alive();
        // Each gets it once: many programs take a second request as one to end at once.
        let group = self.group.map(|group| group.as_raw_nonzero().get());
        for raw in alive.iter().filter(|raw| group.is_none() || group_of(**raw) != group) {
            if let Some(found) = pid(*raw) {
                let _ = rustix::process::kill_process(found, signal);
            }
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_with_its_pid_is_not() {
        let me = Process::current();
        assert!(me.is_alive());
        if cfg!(target_os = "linux") {
            assert!(me.start > 0);
            assert!(!Process { start: me.start + 1, ..me }.is_alive());
        }
        assert!(is_below(me.pid, me.pid));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn children_are_found() {
        let mut child = std::process::Command::new("sleep").arg("600").env("MARK", "x=y").spawn().unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        assert_eq!(Stat::read(child.id()).unwrap().parent, std::process::id());
        assert!(is_below(child.id(), std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Process::find(child.id()).is_none());
    }
}
