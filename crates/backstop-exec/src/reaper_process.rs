//! What a [reaper](crate::reaper) is: a process that waits and reports.
//!
//! It reports that the command was stopped, that it has ended, and whether anything of it is left.
//! It ends when nothing is left. It outlives us if we are killed, so that the next run finds the
//! processes of the command below it; or it ends them then, if the command asks for that
//! ([`Spec::dies_with_us`](crate::Spec)).
//!
//! It is a copy of us that executes no program, so that no file is needed and little time is lost.
//! It shares our memory ([`SHARED`]), on a stack of its own, and so does the command until it is
//! executed: copying the tables of our memory twice would take longer than all else. So neither may
//! allocate, lock, or touch what belongs to a thread of ours. Until the command runs, the thread
//! that starts it waits and lends them its `errno`; from then on the reaper makes system calls that
//! do without, on its own stack. Our memory is given back when both of us have ended.

use crate::launch::{Launch, Prepared};
use crate::reaper::{self, EXITED, KILLED, NAME, NOT_STARTED, REPORT_BYTES, STARTED, STOPPED};
use crate::system_call::{self, ALL_SIGNALS, SHARED, SignalSet};
use crate::tree;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::ffi::CStr;
use std::io::{Error, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

/// The signal that tells the reaper of our death.
const PARENT_DIED: libc::c_int = libc::SIGUSR1;
/// How long processes have between SIGTERM and SIGKILL when we have died: 200 looks, 10 ms apart.
const GRACE_LOOKS: u32 = 200;
const LOOK_NANOSECONDS: libc::c_long = 10_000_000;
/// How many bytes of the list of children are read at once. What is not in it is in the next.
const CHILDREN_BYTES: usize = 4096;
/// The size of the stack of a reaper, and of that of a command until it is executed.
const STACK_BYTES: usize = 64 << 10;
/// The size of what lies below both, where a stack that is too long ends.
const GUARD_BYTES: usize = 64 << 10;

const NAME_WITH_NUL: &CStr = c"backstop-reaper";
const _: () = assert!(NAME_WITH_NUL.to_bytes().len() == NAME.len() && NAME.len() < 16);

/// A reaper whose command runs.
pub(crate) struct Begun {
    pub(crate) pid: u32,
    /// The pid of the command.
    pub(crate) root: u32,
    /// Where the reaper reports.
    pub(crate) reports: PipeReader,
    pub(crate) stacks: Stacks,
}

/// The stacks of a reaper and of a command that is about to be executed.
#[derive(Debug)]
pub(crate) struct Stacks {
    lowest: *mut libc::c_void,
}

impl Stacks {
    const BYTES: usize = GUARD_BYTES + 2 * STACK_BYTES;

    fn new() -> std::io::Result<Self> {
        // SAFETY: new memory at a place of the system's choice. Its lowest part is made unusable.
        unsafe {
            let usable = ProtFlags::READ | ProtFlags::WRITE;
            let lowest = rustix::mm::mmap_anonymous(ptr::null_mut(), Self::BYTES, usable, MapFlags::PRIVATE)?;
            let stacks = Self { lowest };
            rustix::mm::mprotect(lowest, GUARD_BYTES, MprotectFlags::empty())?;
            Ok(stacks)
        }
    }

    /// Where the stack of the command begins; they grow downwards.
    fn of_command(&self) -> *mut libc::c_void {
        self.lowest.wrapping_byte_add(GUARD_BYTES + STACK_BYTES)
    }

    fn of_reaper(&self) -> *mut libc::c_void {
        self.lowest.wrapping_byte_add(Self::BYTES)
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: nobody uses it: both processes have ended, or the command is executed and the
        // reaper has ended.
        let _ = unsafe { rustix::mm::munmap(self.lowest, Self::BYTES) };
    }
}

/// What a reaper is to do. It stays where it is until the command runs.
struct Task {
    command: Prepared,
    /// The descriptor to report to, which is closed on our side.
    to: RawFd,
    /// The file by which a process enters the control group of the command.
    entry: Option<OwnedFd>,
    dies_with_us: bool,
    us: libc::pid_t,
    stacks: Stacks,
    /// The signals that are blocked in the command.
    blocked: SignalSet,
}

/// Starts a command below a new reaper, and waits until it runs. Both enter the control group that
/// `entry` belongs to.
pub(crate) fn begin(launch: Launch, entry: Option<OwnedFd>, dies_with_us: bool) -> std::io::Result<Begun> {
    let (reports, to) = std::io::pipe()?;
    let (command, stacks) = (Prepared::new(launch)?, Stacks::new()?);
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let mut task =
        Box::new(Task { command, to: to.as_raw_fd(), entry, dies_with_us, us, stacks, blocked: 0 });
    // No handler of ours may run in the new processes.
    task.blocked = system_call::set_blocked_signals(ALL_SIGNALS);
    let place: *mut Task = &raw mut *task;
    // SAFETY: the stack is not used by anybody else. What `place` points to lives until the reaper
    // has reported, or for ever.
    let pid =
        unsafe { libc::clone(be_reaper, task.stacks.of_reaper(), SHARED | libc::SIGCHLD, place.cast()) };
    let error = Error::last_os_error();
    system_call::set_blocked_signals(task.blocked);
    drop(to);
    let Some(child) = u32::try_from(pid).ok().and_then(tree::pid) else { return Err(error) };
    let mut report = [0; REPORT_BYTES];
    while system_call::read(reports.as_raw_fd(), &mut report) == -(libc::EINTR as isize) {}
    match reaper::fields(report) {
        [STARTED, root, _] => {
            rustix::io::ioctl_fionbio(&reports, true)?;
            let stacks = task.stacks;
            Ok(Begun { pid: pid.unsigned_abs(), root: root.unsigned_abs(), reports, stacks })
        }
        [kind, error, _] => {
            if reaper::wait_for(child) != Some(0) {
                // Somebody has killed it: the process that was to be the command may still be
                // there.
                std::mem::forget(task);
            }
            let is_told = kind == NOT_STARTED;
            Err(if is_told { Error::from_raw_os_error(error) } else { Error::other("its reaper was killed") })
        }
    }
}

/// The whole life of a reaper.
extern "C" fn be_reaper(task: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the task is not changed by anybody, and stays there until STARTED is reported. The
    // thread that made us waits for that, so that functions of the C library may be called until
    // then, if they neither allocate nor lock.
    unsafe {
        let task = &*task.cast::<Task>();
        let (to, us, dies_with_us) = (task.to, task.us, task.dies_with_us);
        libc::prctl(libc::PR_SET_NAME, NAME_WITH_NUL.as_ptr(), 0, 0, 0);
        // Ignored, it would take our children's endings from us.
        let default: libc::sigaction = std::mem::zeroed();
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, &raw const default, &raw mut action);
        if let Some(entry) = &task.entry {
            // Without a group, the reaper does its work alone.
            system_call::write(entry.as_raw_fd(), b"0");
        }
        let start = Start { task, child_action: action };
        let place: *const Start = &raw const start;
        let flags = SHARED | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut root = match libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) {
            // Waits until the command is executed, or has ended.
            0 => libc::clone(be_command, task.stacks.of_command(), flags, place.cast_mut().cast()),
            _ => -1,
        };
        if root == -1 {
            report(to, NOT_STARTED, *libc::__errno_location(), false);
            system_call::exit(0);
        }
        // A reaper cannot be ended by a signal that a terminal or a group gets: it is in another
        // group, and blocks them all.
        libc::setpgid(0, 0);
        if dies_with_us {
            libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_DIED, 0, 0, 0);
        }
        report(to, STARTED, root, false);
        // From here on, nothing of the thread that made us may be used. In no folder, with no file
        // open.
        system_call::call(libc::SYS_chdir, [c"/".as_ptr() as usize, 0, 0, 0, 0]);
        let to = only_open(to);
        let mut looks: u32 = 0;
        let any = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
        loop {
            loop {
                let Some(info) = system_call::wait_for_child(any) else { system_call::exit(0) };
                let pid = info.si_pid();
                if pid == 0 {
                    break;
                }
                if pid != root {
                    continue;
                }
                match info.si_code {
                    libc::CLD_STOPPED | libc::CLD_TRAPPED => report(to, STOPPED, info.si_status(), false),
                    code => {
                        root = 0;
                        let alone = system_call::wait_for_child(any | libc::WNOWAIT).is_none();
                        let kind = if code == libc::CLD_EXITED { EXITED } else { KILLED };
                        report(to, kind, info.si_status(), alone);
                    }
                }
            }
            if dies_with_us && parent() != us {
                if looks == 0 {
                    end_children(root, libc::SIGTERM);
                } else if looks > GRACE_LOOKS {
                    end_children(root, libc::SIGKILL);
                }
                looks = looks.saturating_add(1);
                let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK_NANOSECONDS };
                system_call::call(libc::SYS_nanosleep, [&raw const pause as usize, 0, 0, 0, 0]);
                continue;
            }
            system_call::wait_for_signal(system_call::only(libc::SIGCHLD) | system_call::only(PARENT_DIED));
        }
    }
}

/// What a process needs to become the command.
struct Start<'t> {
    task: &'t Task,
    /// What SIGCHLD does in the command.
    child_action: libc::sigaction,
}

/// The life of the command until it is executed.
extern "C" fn be_command(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the reaper waits until this process is executed or has ended, and its maker with it.
    unsafe {
        let Start { task, child_action } = &*start.cast::<Start<'_>>();
        libc::sigaction(libc::SIGCHLD, ptr::from_ref(child_action), ptr::null_mut());
        let error = task.command.become_command(task.blocked);
        report(task.to, NOT_STARTED, error, false);
        system_call::exit(libc::EXIT_FAILURE)
    }
}

/// Writes one report. Nobody may be there to read it any more.
fn report(to: RawFd, kind: i32, value: i32, alone: bool) {
    let mut report = [0; REPORT_BYTES];
    for (place, number) in report.chunks_exact_mut(size_of::<i32>()).zip([kind, value, i32::from(alone)]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    system_call::write(to, &report);
}

/// The process that this one is a child of.
unsafe fn parent() -> libc::pid_t {
    // SAFETY: asking has no effect.
    unsafe { system_call::call(libc::SYS_getppid, [0; 5]) as libc::pid_t }
}

/// Moves a descriptor to 0 and closes all others.
unsafe fn only_open(fd: RawFd) -> RawFd {
    // SAFETY: nothing of ours is used after this but descriptor 0.
    unsafe {
        if fd != 0 {
            system_call::call(libc::SYS_dup3, [fd as usize, 0, 0, 0, 0]);
        }
        if system_call::call(libc::SYS_close_range, [1, libc::c_uint::MAX as usize, 0, 0, 0]) != 0 {
            /// Beyond this nothing is open in practice.
            const DESCRIPTORS_MAX: usize = 65_536;
            for fd in 1..DESCRIPTORS_MAX {
                system_call::call(libc::SYS_close, [fd, 0, 0, 0, 0]);
            }
        }
    }
    0
}

/// Sends a signal to the command's group, if the command is still there, and to every child of the
/// reaper. The children of what is killed become the reaper's, and are next.
unsafe fn end_children(root: libc::pid_t, signal: libc::c_int) {
    if root > 1 {
        system_call::kill(-root, signal);
        system_call::kill(-root, libc::SIGCONT);
    }
    let mut list = [0_u8; CHILDREN_BYTES];
    // SAFETY: the path lives for ever, and the descriptor is closed again.
    let read = unsafe {
        let path = c"/proc/thread-self/children".as_ptr() as usize;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let fd = system_call::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0]);
        if fd < 0 {
            return;
        }
        let read = system_call::read(fd as RawFd, &mut list);
        system_call::call(libc::SYS_close, [fd as usize, 0, 0, 0, 0]);
        read
    };
    let mut pid: libc::pid_t = 0;
    // A number that was cut off at the end is not followed by a blank, and is left out.
    for byte in list.iter().take(usize::try_from(read).unwrap_or(0)) {
        if byte.is_ascii_digit() {
            pid = pid.wrapping_mul(10).wrapping_add(libc::pid_t::from(byte - b'0'));
        } else {
            if pid > 1 {
                system_call::kill(pid, signal);
                system_call::kill(pid, libc::SIGCONT);
            }
            pid = 0;
        }
    }
}
