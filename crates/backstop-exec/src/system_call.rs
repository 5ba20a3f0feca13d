//! System calls for a process that shares the memory of another one: nothing is touched but what
//! the arguments point to. The functions of the C library would write to `errno`, which belongs to
//! the thread that made the process.

use std::os::fd::RawFd;

/// What makes a new process share our memory, where its system calls can be made without the C
/// library. Elsewhere it gets a copy.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_pointer_width = "64"))]
pub(crate) const SHARED: libc::c_int = libc::CLONE_VM;
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_pointer_width = "64")))]
pub(crate) const SHARED: libc::c_int = 0;

/// A set of signals, as the system has it: signal n is bit n - 1.
pub(crate) type SignalSet = u64;
const SIGNAL_SET_BYTES: usize = size_of::<SignalSet>();

/// Every signal.
pub(crate) const ALL_SIGNALS: SignalSet = SignalSet::MAX;

/// A set with one signal.
pub(crate) const fn only(signal: libc::c_int) -> SignalSet {
    1 << (signal - 1)
}

/// Makes a system call. Gives its result, or the error as a negative number.
///
/// # Safety
///
/// As for the system call.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: these are the registers of a system call; it changes no others.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call. Gives its result, or the error as a negative number.
///
/// # Safety
///
/// As for the system call.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64"))]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: these are the registers of a system call; it changes no others.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            options(nostack),
        );
    }
    result
}

/// Makes a system call. Gives its result, or the error as a negative number.
///
/// # Safety
///
/// As for the system call.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_pointer_width = "64")))]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the caller's. Memory is not shared here, so that `errno` is our own.
    unsafe {
        match libc::syscall(number, a, b, c, d, e) {
            -1 => -(*libc::__errno_location() as isize),
            result => result as isize,
        }
    }
}

/// Changes which signals are blocked, and gives which were.
pub(crate) fn set_blocked_signals(blocked: SignalSet) -> SignalSet {
    let mut before: SignalSet = 0;
    let set = [libc::SIG_SETMASK as usize, &raw const blocked as usize, &raw mut before as usize];
    // SAFETY: both sets live until the call returns.
    unsafe {
        call(libc::SYS_rt_sigprocmask, [set[0], set[1], set[2], SIGNAL_SET_BYTES, 0]);
    }
    before
}

/// Waits for one of these signals, which must be blocked.
pub(crate) fn wait_for_signal(awaited: SignalSet) {
    // SAFETY: the set lives until the call returns.
    unsafe {
        call(libc::SYS_rt_sigtimedwait, [&raw const awaited as usize, 0, 0, SIGNAL_SET_BYTES, 0]);
    }
}

/// Waits for any child, with these options of waitid(2). `None` if there are no children.
pub(crate) fn wait_for_child(options: libc::c_int) -> Option<libc::siginfo_t> {
    loop {
        // SAFETY: the struct is made of numbers, and the system fills it in.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let place = &raw mut info as usize;
            match call(libc::SYS_waitid, [libc::P_ALL as usize, 0, place, options as usize, 0]) {
                0 => return Some(info),
                interrupted if interrupted == -(libc::EINTR as isize) => {}
                _ => return None,
            }
        }
    }
}

/// Reads once. Gives how many bytes were read, or the error as a negative number.
pub(crate) fn read(fd: RawFd, to: &mut [u8]) -> isize {
    // SAFETY: the buffer is as long as is said.
    unsafe { call(libc::SYS_read, [fd as usize, to.as_mut_ptr() as usize, to.len(), 0, 0]) }
}

/// Writes once. Whether it can be written nobody learns.
pub(crate) fn write(fd: RawFd, from: &[u8]) {
    // SAFETY: the buffer is as long as is said.
    unsafe {
        call(libc::SYS_write, [fd as usize, from.as_ptr() as usize, from.len(), 0, 0]);
    }
}

/// Sends a signal to a process or a group.
pub(crate) fn kill(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: two numbers.
    unsafe {
        call(libc::SYS_kill, [pid as usize, signal as usize, 0, 0, 0]);
    }
}

/// Ends this process.
pub(crate) fn exit(code: libc::c_int) -> ! {
    loop {
        // SAFETY: it does not return.
        unsafe {
            call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0]);
        }
    }
}
