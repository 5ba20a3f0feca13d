//! Pseudo-terminals for commands that want one, and lending our own terminal to a command that
//! reads it.

use crate::mailbox::Mailbox;
use crate::supervise::Message;
use crate::tree;
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A pseudo-terminal for a command: our side of it, and the previous settings of our own terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    ours: OwnedFd,
    theirs: Option<OwnedFd>,
    before: Option<Termios>,
}

impl Terminal {
    pub(crate) fn open() -> std::io::Result<Self> {
        let (ours, theirs) = open_pair()?;
        let terminal = Self { ours, theirs: Some(theirs), before: None };
        terminal.resize();
        Ok(terminal)
    }

    /// The command's side, for each of its standard streams.
    pub(crate) fn streams(&self) -> std::io::Result<[OwnedFd; 3]> {
        let theirs = self.theirs.as_ref().ok_or_else(|| std::io::Error::other("the terminal is in use"))?;
        Ok([theirs.try_clone()?, theirs.try_clone()?, theirs.try_clone()?])
    }

    /// Closes our copy of the command's side, and passes typed characters on as they are.
    pub(crate) fn started(&mut self) {
        self.theirs = None;
        let stdin = rustix::stdio::stdin();
        if !is_foreground() {
            return;
        }
        if let Ok(before) = rustix::termios::tcgetattr(stdin) {
            let mut raw = before.clone();
            raw.make_raw();
            if rustix::termios::tcsetattr(stdin, OptionalActions::Now, &raw).is_ok() {
                self.before = Some(before);
            }
        }
    }

    /// The writer for what is typed.
    pub(crate) fn input(&self, to: &Mailbox) -> std::io::Result<Keyboard> {
        Ok(Keyboard { to: File::from(self.ours.try_clone()?), interrupts: 0, supervisor: to.clone() })
    }

    pub(crate) fn output(&self) -> std::io::Result<File> {
        Ok(File::from(self.ours.try_clone()?))
    }

    /// Gives the pseudo-terminal the size of ours.
    pub(crate) fn resize(&self) {
        let size = our_size().filter(|size| size.ws_row > 0 && size.ws_col > 0).unwrap_or(Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        });
        let _ = rustix::termios::tcsetwinsize(&self.ours, size);
    }
}

/// Opens both sides of a pseudo-terminal: ours, then the command's.
pub(crate) fn open_pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty())?;
    Ok((ours, theirs))
}

/// Whether nobody in our session could continue our process group once it is stopped: the system
/// ignores SIGTSTP, SIGTTIN and SIGTTOU in such a group.
pub fn is_group_orphaned() -> bool {
    let us = std::process::id();
    let (session, group) = (tree::session_of(us), tree::group_of(us));
    let mut above = std::os::unix::process::parent_id();
    while above > 0 {
        if tree::session_of(above) != session {
            return true;
        }
        if tree::group_of(above) != group {
            return false;
        }
        above = tree::Stat::read(above).map_or(0, |stat| stat.parent);
    }
    true
}

/// Whether a terminal controls this process: then its keys send signals to our process group.
pub fn has_controlling_terminal() -> bool {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, rustix::fs::Mode::empty()).is_ok()
}

/// The keyboard side of a pseudo-terminal. At the end of the input it sends Ctrl-D.
pub(crate) struct Keyboard {
    to: File,
    /// How many times Ctrl-C was typed, and nothing else since.
    interrupts: usize,
    supervisor: Mailbox,
}

impl Keyboard {
    /// Notes what is typed. Keys of this terminal do not reach us as signals: a second Ctrl-C in a
    /// row ends a command that ignores the first. What a command does that handles it is its own
    /// affair.
    fn note(&mut self, bytes: &[u8]) {
        let Ok(settings) = rustix::termios::tcgetattr(&self.to) else { return };
        let key = settings.special_codes[SpecialCodeIndex::VINTR];
        if !settings.local_modes.contains(LocalModes::ISIG) || bytes.iter().any(|byte| *byte != key) {
            self.interrupts = 0;
            return;
        }
        self.interrupts += bytes.len();
        if self.interrupts > 1 && !self.is_handled() {
            self.supervisor.send(Message::Insisted);
        }
    }

    /// Whether the program in the foreground has a handler for Ctrl-C.
    fn is_handled(&self) -> bool {
        let group = rustix::termios::tcgetpgrp(&self.to).ok();
        let leader = group.and_then(|group| u32::try_from(group.as_raw_nonzero().get()).ok());
        leader.is_some_and(|pid| tree::catches(pid, libc::SIGINT))
    }
}

impl Write for Keyboard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.note(bytes);
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Ctrl-D, the end of input. Without it the command would wait for ever.
        let _ = self.to.write_all(b"\x04");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

fn our_size() -> Option<Winsize> {
    [rustix::stdio::stdout(), rustix::stdio::stderr(), rustix::stdio::stdin()]
        .into_iter()
        .find_map(|fd| rustix::termios::tcgetwinsize(fd).ok())
}

/// Whether our standard input is a terminal and we are its foreground process group.
fn is_foreground() -> bool {
    let stdin = rustix::stdio::stdin();
    rustix::termios::tcgetpgrp(stdin).is_ok_and(|group| Some(group) == tree::own_group())
}

/// Gives our terminal to a process group that reads from it. Returns whether it was ours to give.
pub(crate) fn lend(group: Pid) -> bool {
    is_foreground() && set_foreground(group)
}

/// Makes us the terminal's foreground process group again.
pub(crate) fn take_back() {
    if let Some(group) = tree::own_group() {
        set_foreground(group);
    }
}

/// Sets the foreground process group.
fn set_foreground(group: Pid) -> bool {
    without(libc::SIGTTOU, || {
        // SAFETY: the descriptor is open, and nothing is read or written through pointers.
        unsafe {
            libc::tcsetpgrp(rustix::stdio::stdin().as_fd().as_raw_fd(), group.as_raw_nonzero().get()) == 0
        }
    })
}

/// Blocks a signal for a call to the terminal that would stop us in the background: SIGTTOU where
/// it changes the terminal, SIGTTIN where it reads.
pub(crate) fn without<T>(signal: i32, call: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before they are read, and the mask of this thread is put
    // back.
    unsafe {
        let mut held: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut held);
        libc::sigaddset(&raw mut held, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
        let done = call();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        done
    }
}
