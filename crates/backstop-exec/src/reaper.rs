//! A process of ours between us and a command: it adopts every orphan of the command.
//!
//! What a command has started is recognised by descent: a subreaper is the parent of every process
//! below it that lost its own, whatever its session and its environment are. We are no fit
//! subreaper ourselves. We may have children that we did not start (a shell that starts a process
//! substitution and then executes us has given us one), several commands may run beside each other,
//! and what we adopt is nobody's when we are killed. So a command gets a subreaper of its own,
//! which has no other children.
//!
//! This is our side of it. The process itself is in `reaper_process`.

use crate::ended::Status;
use crate::tree;
use rustix::process::Signal;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// The name of a reaper, as `ps` and `/proc` show it: at most 15 bytes.
pub(crate) const NAME: &str = "backstop-reaper";

/// The size of a [`Report`] on its way.
pub(crate) const REPORT_BYTES: usize = 12;
/// The kinds of reports, as they are sent. The first number of each is a pid, a signal, an exit
/// code or an error of the system.
pub(crate) const STARTED: i32 = 1;
pub(crate) const STOPPED: i32 = 2;
pub(crate) const EXITED: i32 = 3;
pub(crate) const KILLED: i32 = 4;
pub(crate) const NOT_STARTED: i32 = 5;

/// What a reaper reports about its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// It was stopped by this signal.
    Stopped(i32),
    /// It has ended. `alone` says that no process of it is left.
    Ended { status: Status, alone: bool },
    /// The reaper has ended. Before [`Report::Ended`] this means that somebody killed it.
    Gone,
}

/// A reaper that runs, and the command below it.
#[derive(Debug)]
pub(crate) struct Reaper {
    pub(crate) pid: u32,
    /// The pid of the command.
    pub(crate) root: u32,
    pub(crate) reports: std::io::PipeReader,
    /// Given back after the reaper has ended.
    #[cfg(target_os = "linux")]
    pub(crate) _stacks: crate::reaper_process::Stacks,
    /// Dropped after the reaper has ended: what is left in it ends with it.
    #[cfg(target_os = "linux")]
    pub(crate) _group: Option<crate::cgroup::Cgroup>,
}

impl Reaper {
    /// The descriptor that is readable when there is a report.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// The next report, if there is one. Does not wait.
    pub(crate) fn next(&mut self) -> Option<Report> {
        let mut report = [0; REPORT_BYTES];
        loop {
            return match self.reports.read(&mut report) {
                Ok(REPORT_BYTES) => Some(read(report)),
                Ok(_) => Some(Report::Gone),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
                Err(_) => Some(Report::Gone),
            };
        }
    }
}

impl Drop for Reaper {
    /// What is still below it now is left to the system.
    fn drop(&mut self) {
        if let Some(pid) = tree::pid(self.pid) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            wait_for(pid);
        }
    }
}

/// Waits until a child has ended. Gives its exit code, if it exited.
pub(crate) fn wait_for(pid: rustix::process::Pid) -> Option<i32> {
    loop {
        match rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some((_, status))) => return status.exit_status(),
            _ => return None,
        }
    }
}

/// The numbers of a report: its kind, its value, and whether no process of the command is left.
pub(crate) fn fields(report: [u8; REPORT_BYTES]) -> [i32; 3] {
    let field = |at: usize| i32::from_ne_bytes([report[at], report[at + 1], report[at + 2], report[at + 3]]);
    [field(0), field(4), field(8)]
}

fn read(report: [u8; REPORT_BYTES]) -> Report {
    let [kind, value, alone] = fields(report);
    let ended = |status| Report::Ended { status, alone: alone != 0 };
    match kind {
        STOPPED => Report::Stopped(value),
        EXITED => ended(Status { code: Some(value), signal: None }),
        KILLED => ended(Status { code: None, signal: Some(value) }),
        _ => Report::Gone,
    }
}
