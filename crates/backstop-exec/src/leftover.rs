//! What a killed Backstop left behind.

use crate::tree::{self, Process, Stat};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long leftovers have between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);

/// Ends a command whose supervisor is gone: the process itself, where it is still the same one, and everything that was
/// started with this variable in its environment. Gives the names of what was ended. We ourselves and what we hang on are
/// never touched: then it is no leftover, it is at work.
pub fn end_leftover(process: Option<Process>, mark: (&str, &str)) -> Vec<String> {
    let me = std::process::id();
    let find = || -> Vec<Process> {
        let mut found: Vec<Process> = process.into_iter().filter(Process::is_alive).collect();
        let marked = tree::all().into_iter().filter(|pid| tree::has_variable(*pid, mark.0, mark.1));
        found.extend(marked.filter_map(Process::find).filter(Process::is_alive));
        let mut at = 0;
        while at < found.len() {
            for child in tree::children(found[at].pid).into_iter().filter_map(Process::find) {
                if child.is_alive() && !found.contains(&child) {
                    found.push(child);
                }
            }
            at += 1;
        }
        found.dedup();
        found
    };
    let mut alive = find();
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
        let alive = find();
        if alive.is_empty() {
            break;
        }
        alive.iter().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(Duration::from_millis(5));
    }
    names
}
