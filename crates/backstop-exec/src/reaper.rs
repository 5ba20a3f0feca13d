//! A process of ours between us and a command: it adopts every orphan of the command.
//!
//! What a command has started is recognised by descent: a subreaper is the parent of every process
//! below it that lost its own, whatever its session and its environment are. We are no fit
//! subreaper ourselves. We may have children that we did not start (a shell that starts a process
//! substitution and then executes us has given us one), several commands may run beside each other,
//! and what we adopt is nobody's when we are killed. So a command gets a subreaper of its own,
//! which has no other children.
//!
//! The reaper does nothing but wait and report: that the command was stopped, that it has ended,
//! and whether anything of it is left. It ends when nothing is left. It outlives us if we are
//! killed, so that the next run finds the processes of the command below it; or it ends them then,
//! if the command asks for that ([`Spec::dies_with_us`](crate::Spec)).
//!
//! It is forked and never executes a program, so that no file is needed and little time is lost.
//! Between fork and exec nothing may be allocated or locked: only system calls are made here.

use crate::ended::Status;
use crate::tree;
use rustix::process::Signal;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Child;

/// The name of a reaper, as `ps` and `/proc` show it: at most 15 bytes.
pub(crate) const NAME: &str = "backstop-reaper";

/// The size of a [`Report`] on its way.
const REPORT_BYTES: usize = 12;
/// The kinds of reports, as they are sent.
const STARTED: i32 = 1;
const STOPPED: i32 = 2;
const EXITED: i32 = 3;
const KILLED: i32 = 4;

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

/// Where a reaper reports, and the control group of its command, where it has one.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(crate) reports: std::io::PipeReader,
    #[cfg(target_os = "linux")]
    pub(crate) group: Option<crate::cgroup::Cgroup>,
}

/// A reaper that runs, and the command below it.
#[derive(Debug)]
pub(crate) struct Reaper {
    process: Child,
    reports: std::io::PipeReader,
    root: u32,
    /// Dropped after the reaper has ended: what is left in it ends with it.
    #[cfg(target_os = "linux")]
    _group: Option<crate::cgroup::Cgroup>,
}

impl Reaper {
    /// Waits for the reaper to say which process the command is.
    #[cfg(target_os = "linux")]
    pub(crate) fn greet(process: Child, Reports { reports, group }: Reports) -> std::io::Result<Self> {
        let mut reaper = Self { process, reports, root: 0, _group: group };
        let mut report = [0; REPORT_BYTES];
        reaper.reports.read_exact(&mut report)?;
        reaper.root = u32::try_from(fields(report)[1]).unwrap_or(0);
        rustix::io::ioctl_fionbio(&reaper.reports, true)?;
        Ok(reaper)
    }

    /// The pid of the reaper.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The pid of the command.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

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
        if let Some(pid) = tree::pid(self.process.id()) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

fn fields(report: [u8; REPORT_BYTES]) -> [i32; 3] {
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

/// One call of waitid(2) for any child. `None` if there are no children.
#[cfg(target_os = "linux")]
fn wait_for_any(options: libc::c_int) -> Option<libc::siginfo_t> {
    loop {
        // SAFETY: the struct is made of numbers, and the system fills it in. Nothing is allocated.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            if libc::waitid(libc::P_ALL, 0, &raw mut info, options) == 0 {
                return Some(info);
            }
            if *libc::__errno_location() != libc::EINTR {
                return None;
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use fork::put_below;

#[cfg(target_os = "linux")]
mod fork {
    use super::{EXITED, KILLED, NAME, STARTED, STOPPED, wait_for_any};
    use std::ffi::CStr;
    use std::io::PipeReader;
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// The signal that tells the reaper of our death.
    const PARENT_DIED: libc::c_int = libc::SIGUSR1;
    /// How long processes have between SIGTERM and SIGKILL when we have died: 200 looks, 10 ms
    /// apart.
    const GRACE_LOOKS: u32 = 200;
    const LOOK_NANOSECONDS: libc::c_long = 10_000_000;
    /// How many bytes of the list of children are read at once. What is not in it is in the next.
    const CHILDREN_BYTES: usize = 4096;

    /// Puts a reaper between us and the command, which is started afterwards. Both enter the
    /// control group that `entry` belongs to. Must be called before anything else that happens
    /// between fork and exec is added to the command.
    pub(crate) fn put_below(
        command: &mut Command,
        own_group: bool,
        dies_with_us: bool,
        entry: Option<OwnedFd>,
    ) -> std::io::Result<PipeReader> {
        let (reports, writer) = std::io::pipe()?;
        let writer = OwnedFd::from(writer);
        // SAFETY: asking for our pid has no effect.
        let us = unsafe { libc::getpid() };
        // SAFETY: the closure makes system calls only, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                if let Some(entry) = &entry {
                    // Without a group, the reaper does its work alone.
                    libc::write(entry.as_raw_fd(), c"0".as_ptr().cast(), 1);
                }
                become_two(writer.as_raw_fd(), us, own_group, dies_with_us)
            });
        }
        Ok(reports)
    }

    /// Forks: the new process returns and becomes the command, this one is the reaper.
    fn become_two(to: RawFd, us: libc::pid_t, own_group: bool, dies_with_us: bool) -> std::io::Result<()> {
        // SAFETY: everything is a system call on numbers and on structs of numbers; nothing is
        // allocated, and no lock is taken. `fork` is called by the only thread of a process that
        // was forked by the same library.
        unsafe {
            // A reaper cannot be ended by a signal that a terminal or a group gets.
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut mask);
            // Ignored, it would take our children's endings from us.
            let default: libc::sigaction = std::mem::zeroed();
            let mut child_action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &raw const default, &raw mut child_action);
            if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            match libc::fork() {
                -1 => Err(std::io::Error::last_os_error()),
                0 => {
                    libc::sigaction(libc::SIGCHLD, &raw const child_action, std::ptr::null_mut());
                    libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
                    if own_group {
                        libc::setpgid(0, 0);
                    }
                    Ok(())
                }
                root => {
                    if dies_with_us {
                        libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_DIED, 0, 0, 0);
                    }
                    attend(root, to, us, dies_with_us)
                }
            }
        }
    }

    /// The whole life of a reaper.
    unsafe fn attend(mut root: libc::pid_t, to: RawFd, us: libc::pid_t, dies_with_us: bool) -> ! {
        // SAFETY: as above.
        unsafe {
            // Not in the group that a terminal's keys reach, in no folder, with no file open.
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_NAME, NAME_WITH_NUL.as_ptr(), 0, 0, 0);
            libc::chdir(c"/".as_ptr());
            libc::dup2(to, 0);
            close_all_but_first();
            report(STARTED, root, false);
            let mut awaited: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut awaited);
            libc::sigaddset(&raw mut awaited, libc::SIGCHLD);
            libc::sigaddset(&raw mut awaited, PARENT_DIED);
            let mut looks: u32 = 0;
            let any = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
            loop {
                loop {
                    let Some(info) = wait_for_any(any) else { libc::_exit(0) };
                    let pid = info.si_pid();
                    if pid == 0 {
                        break;
                    }
                    if pid != root {
                        continue;
                    }
                    match info.si_code {
                        libc::CLD_STOPPED | libc::CLD_TRAPPED => report(STOPPED, info.si_status(), false),
                        code => {
                            root = 0;
                            let alone = wait_for_any(any | libc::WNOWAIT).is_none();
                            let kind = if code == libc::CLD_EXITED { EXITED } else { KILLED };
                            report(kind, info.si_status(), alone);
                        }
                    }
                }
                if dies_with_us && libc::getppid() != us {
                    if looks == 0 {
                        end_children(root, libc::SIGTERM);
                    } else if looks > GRACE_LOOKS {
                        end_children(root, libc::SIGKILL);
                    }
                    looks = looks.saturating_add(1);
                    let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK_NANOSECONDS };
                    libc::nanosleep(&raw const pause, std::ptr::null_mut());
                    continue;
                }
                libc::sigwaitinfo(&raw const awaited, std::ptr::null_mut());
            }
        }
    }

    const NAME_WITH_NUL: &CStr = c"backstop-reaper";
    const _: () = assert!(NAME_WITH_NUL.to_bytes().len() == NAME.len() && NAME.len() < 16);

    /// Writes one report to descriptor 0. Nobody may be there to read it any more.
    unsafe fn report(kind: i32, value: i32, alone: bool) {
        let report = [kind, value, i32::from(alone)];
        // SAFETY: the numbers live until the call returns.
        unsafe {
            libc::write(0, report.as_ptr().cast(), size_of_val(&report));
        }
    }

    unsafe fn close_all_but_first() {
        // SAFETY: nothing of ours is used after this but descriptor 0.
        unsafe {
            if libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) != 0 {
                /// Beyond this nothing is open in practice.
                const DESCRIPTORS_MAX: libc::c_int = 65_536;
                for fd in 1..DESCRIPTORS_MAX {
                    libc::close(fd);
                }
            }
        }
    }

    /// Sends a signal to the command's group, if the command is still there, and to every child of
    /// the reaper. The children of what is killed become the reaper's, and are next.
    unsafe fn end_children(root: libc::pid_t, signal: libc::c_int) {
        // SAFETY: the buffer lives until the calls return, and only what was read of it is used.
        unsafe {
            if root > 1 {
                libc::kill(-root, signal);
                libc::kill(-root, libc::SIGCONT);
            }
            let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if fd < 0 {
                return;
            }
            let mut list = [0_u8; CHILDREN_BYTES];
            let read = libc::read(fd, list.as_mut_ptr().cast(), CHILDREN_BYTES);
            libc::close(fd);
            let mut pid: libc::pid_t = 0;
            // A number that was cut off at the end is not followed by a blank, and is left out.
            for byte in list.iter().take(usize::try_from(read).unwrap_or(0)) {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(libc::pid_t::from(byte - b'0'));
                } else {
                    if pid > 1 {
                        libc::kill(pid, signal);
                        libc::kill(pid, libc::SIGCONT);
                    }
                    pid = 0;
                }
            }
        }
    }
}
