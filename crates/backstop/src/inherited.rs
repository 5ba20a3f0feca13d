//! What this process was given by whoever started it, as it was before Rust's runtime changed it.
//!
//! Before `main`, the runtime opens `/dev/null` on standard streams that are closed and ignores
//! SIGPIPE; we need the default action of SIGCHLD. A command that we start gets what we were given,
//! so it is looked at earlier: by a function that the loader calls.

use backstop_runtime::signals::is_ignored;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
/// The signals whose inherited action we change, and whether each was ignored.
static IGNORED: [(libc::c_int, AtomicBool); 2] =
    [(libc::SIGPIPE, AtomicBool::new(false)), (libc::SIGCHLD, AtomicBool::new(false))];

/// Whether this standard stream (0, 1 or 2) was closed when we were started.
pub(crate) fn is_closed(stream: usize) -> bool {
    CLOSED.get(stream).is_some_and(|closed| closed.load(Ordering::Relaxed))
}

/// The signals that were ignored when we were started, and that we no longer ignore.
pub(crate) fn ignored() -> Vec<libc::c_int> {
    let ignored = IGNORED.iter().filter(|(_, ignored)| ignored.load(Ordering::Relaxed));
    ignored.map(|(signal, _)| *signal).collect()
}

extern "C" fn look() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: asking for a descriptor's flags changes nothing.
        closed.store(unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1, Ordering::Relaxed);
    }
    for (signal, ignored) in &IGNORED {
        ignored.store(is_ignored(*signal), Ordering::Relaxed);
    }
    // Ignored, it would take the endings of our children from us: we would wait for ever.
    // SAFETY: the default action is set, no code of ours is called.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

// SAFETY: the loader calls what these sections list, before `main`; the function uses nothing that
// the runtime sets up.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;
