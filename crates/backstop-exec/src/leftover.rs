//! Ends the processes of a command whose supervisor was killed.

use crate::tree::{self, Process, Stat};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

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
    /// process with the mark, and all their descendants.
    fn alive(&self) -> Vec<Process> {
        let leader = self.process.filter(Process::is_alive);
        let mut found: Vec<Process> = leader.into_iter().collect();
        for pid in tree::all() {
            // The group is the command's for as long as its leader exists.
            let in_group = leader.is_some_and(|l| Stat::read(pid).is_some_and(|stat| stat.group == l.pid));
            if in_group || tree::has_variable(pid, self.mark.0, self.mark.1) {
                found.extend(Process::find(pid).filter(Process::is_alive).filter(|p| !found.contains(p)));
            }
        }
        let mut at = 0;
        while at < found.len() {
            for child in tree::children(found[at].pid).into_iter().filter_map(Process::find) {
                if child.is_alive() && !found.contains(&child) {
                    found.push(child);
                }
            }
            at += 1;
        }
        found
    }
}

/// Ends a command whose supervisor is gone, and returns the names of the processes that were ended.
/// Never touches this process or its ancestors: if they are part of the command, it is still at
/// work.
pub fn end_leftover(leftover: &Leftover<'_>) -> Vec<String> {
    let me = std::process::id();
    let mut alive = leftover.alive();
    if alive.iter().any(|process| tree::is_below(me, process.pid)) {
        return Vec::new();
    }
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
    for _ in 0..100 {
        let alive = leftover.alive();
        if alive.is_empty() {
            break;
        }
        alive.iter().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(Duration::from_millis(5));
    }
    names
}
