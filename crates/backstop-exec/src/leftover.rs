//! Ends the processes of a command whose supervisor was killed.

use crate::reaper;
use crate::tree::{self, Process, Stat};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a reaper has to notice that nothing is left below it.
const GRACE_OF_REAPERS: Duration = Duration::from_millis(500);

/// A command whose supervisor is gone.
#[derive(Debug, Clone)]
pub struct Leftover<'l> {
    /// The command's process, which led a process group.
    pub process: Option<Process>,
    /// An environment variable, as name and value, that the command and its descendants were
    /// started with and no other process has.
    pub mark: (&'l str, &'l str),
}

impl Leftover<'_> {
    /// The processes that still run: the command itself if its pid was not reused, its group, every
    /// process with the mark or in a control group of it, and everything below them and below a
    /// reaper of theirs.
    fn alive(&self) -> Vec<Process> {
        let leader = self.process.filter(Process::is_alive);
        let (name, value) = (OsStr::new(self.mark.0), OsStr::new(self.mark.1));
        let mut first: Vec<u32> = leader.iter().map(|leader| leader.pid).collect();
        for pid in tree::all() {
            // The group is the command's for as long as its leader exists.
            let in_group = leader.is_some_and(|l| Stat::read(pid).is_some_and(|stat| stat.group == l.pid));
            if in_group || tree::has_variable(pid, name, value) {
                first.extend(reaper_above(pid).filter(|reaper| !first.contains(reaper)));
                first.push(pid);
            }
        }
        #[cfg(target_os = "linux")]
        first.extend(crate::cgroup::LeftGroups::of(self.mark.1).processes());
        first.dedup();
        let mut found: Vec<Process> = Vec::new();
        for process in tree::with_descendants(first).into_iter().filter_map(Process::find) {
            if process.is_alive() && !found.contains(&process) {
                found.push(process);
            }
        }
        found
    }

    /// The processes of [`Leftover::alive`] that are to be ended. A reaper ends by itself when
    /// nothing is left below it; until then it keeps together what belongs together.
    fn to_end(&self) -> Vec<Process> {
        let mut alive = self.alive();
        alive.retain(|process| !is_reaper(process.pid));
        alive
    }
}

fn is_reaper(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.name == reaper::NAME)
}

/// The reaper that a process is directly below of, if its Backstop is gone.
fn reaper_above(pid: u32) -> Option<u32> {
    let parent = Stat::read(pid)?.parent;
    let above = Stat::read(parent).filter(|stat| stat.name == reaper::NAME)?;
    // One whose Backstop is at work is not left over. A reaper's parent is its Backstop or, when
    // that is gone, a process that adopted it.
    let adopted = above.parent <= 1 || is_reaper(above.parent) || !is_same_program(above.parent, parent);
    adopted.then_some(parent)
}

fn is_same_program(one: u32, other: u32) -> bool {
    let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(one).is_some_and(|one| Some(one) == program(other))
}

/// Ends a command whose supervisor is gone, and returns the names of the processes that were ended.
/// Never touches this process or its ancestors: if they are part of the command, it is still at
/// work.
pub fn end_leftover(leftover: &Leftover<'_>) -> Vec<String> {
    let me = std::process::id();
    if leftover.alive().iter().any(|process| tree::is_below(me, process.pid)) {
        return Vec::new();
    }
    let mut alive = leftover.to_end();
    let names = alive.iter().filter_map(|p| Stat::read(p.pid)).map(|stat| stat.name).collect();
    for process in &alive {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    let until = Instant::now() + GRACE;
    while !alive.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
        alive.retain(Process::is_alive);
    }
    kill_all(|| leftover.to_end());
    // A reaper has ended by now; what still has its name has only taken it.
    let until = Instant::now() + GRACE_OF_REAPERS;
    while !leftover.alive().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_all(|| leftover.alive());
    #[cfg(target_os = "linux")]
    crate::cgroup::LeftGroups::of(leftover.mark.1).remove();
    names
}

/// Kills what is alive until nothing is: what is killed may have started something.
fn kill_all(alive: impl Fn() -> Vec<Process>) {
    for _ in 0..100 {
        let alive = alive();
        if alive.is_empty() {
            break;
        }
        alive.iter().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(Duration::from_millis(5));
    }
}
