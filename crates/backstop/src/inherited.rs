//! What this process was given by whoever started it, as it was before Rust's runtime changed it.
//!
//! Before `main`, the runtime opens `/dev/null` on standard streams that are closed and ignores
//! SIGPIPE. A command that we start gets what we were given, so it is looked at earlier: by a
//! function that the loader calls.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Whether this standard stream (0, 1 or 2) was closed when we were started.
pub(crate) fn is_closed(stream: usize) -> bool {
    CLOSED.get(stream).is_some_and(|closed| closed.load(Ordering::Relaxed))
}

/// Whether SIGPIPE was ignored when we were started.
pub(crate) fn ignores_sigpipe() -> bool {
    IGNORES_SIGPIPE.load(Ordering::Relaxed)
}

/// Whether this process ignores a signal now.
pub(crate) fn ignores(signal: libc::c_int) -> bool {
    // SAFETY: the action is only read, into a struct of numbers that is initialised.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

extern "C" fn look() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: asking for a descriptor's flags changes nothing.
        closed.store(unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1, Ordering::Relaxed);
    }
    IGNORES_SIGPIPE.store(ignores(libc::SIGPIPE), Ordering::Relaxed);
}

// SAFETY: the loader calls what these sections list, before `main`; the function uses nothing that
// the runtime sets up.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;
