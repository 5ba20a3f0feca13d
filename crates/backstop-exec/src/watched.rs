//! Our own standard input, inherited by the command. It is watched and never read, so that what the
//! command leaves is there for whoever comes next.
//!
//! What a pipe holds is looked at without taking it, before and after each attempt. Whether the
//! command took something decides whether another attempt can be made:
//!
//! | before the attempt | afterwards | another attempt |
//! |---|---|---|
//! | the writer was gone, all content was copied | any of it is gone | gets the copy |
//! | otherwise | something is gone | is refused |
//! | | nothing is gone | inherits the same input |
//!
//! A writer that is still there may send something that the command takes at once. The supervisor
//! polls the input while the command runs ([`Watched::arrived`]); it may miss single short messages
//! to a command that waits for them, never a stream of them.

use crate::Replay;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many bytes are copied at most, so that another attempt can read them: the largest pipe that
/// a user may have without being asked.
const COPY_BYTES_MAX: usize = 1 << 20;
/// How many bytes at the beginning of the input are compared to tell whether they are still the
/// same.
const COMPARED_BYTES: usize = 4096;

/// Our own standard input, inherited by the command.
#[derive(Debug, Clone)]
pub struct Watched {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    kind: Kind,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
    Terminal,
}

#[derive(Debug, Default)]
struct State {
    /// What was there at the latest look, before anything was taken.
    seen: Seen,
    /// All that can ever be read, where the writer was gone and it could be copied.
    copy: Option<Vec<u8>>,
    /// Whether an attempt has taken something.
    taken: bool,
    /// Whether that is only possible: the writer has left meanwhile, and nobody knows what passed.
    unsure: bool,
    /// Whether the current attempt reads the copy.
    from_copy: bool,
    /// Tells of each read of the terminal, once it was asked for.
    reads: Option<OwnedFd>,
}

/// What there is to be read, looked at from outside.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    beginning: Vec<u8>,
    writer_gone: bool,
    /// When the terminal was last read, in seconds; the system rounds it.
    read_at: i64,
}

/// What an attempt reads.
#[derive(Debug)]
pub(crate) enum Source {
    /// Our input itself.
    Own(File),
    /// A copy of it.
    Copy(Replay),
}

impl Watched {
    /// Watches a pipe, a socket or a terminal. `None` for anything else: that hinders nothing.
    pub fn new(file: File) -> Option<Self> {
        use std::io::IsTerminal;
        use std::os::unix::fs::FileTypeExt;
        let kind = match file.metadata().ok()?.file_type() {
            kind if kind.is_fifo() => Kind::Pipe,
            kind if kind.is_socket() => Kind::Socket,
            _ if file.is_terminal() => Kind::Terminal,
            _ => return None,
        };
        Some(Self { shared: Arc::new(Shared { file, kind, state: Mutex::default() }) })
    }

    /// What the next attempt reads.
    pub(crate) fn begin(&self) -> std::io::Result<Source> {
        let mut state = self.state();
        if let Some(copy) = state.copy.clone().filter(|_| state.taken) {
            state.from_copy = true;
            return Ok(Source::Copy(Replay::of(copy)));
        }
        state.seen = self.look();
        let whole = usize::try_from(state.seen.bytes).unwrap_or(usize::MAX);
        if state.seen.writer_gone && (1..=COPY_BYTES_MAX).contains(&whole) {
            state.copy = self.peek(whole).filter(|copy| copy.len() == whole);
        }
        Ok(Source::Own(self.shared.file.try_clone()?))
    }

    /// The descriptor to poll for input that arrives while the command runs, where that is needed.
    pub(crate) fn polled(&self) -> Option<BorrowedFd<'_>> {
        let state = self.state();
        let arrives = self.shared.kind != Kind::Terminal && !state.seen.writer_gone && state.seen.bytes == 0;
        (arrives && !state.from_copy).then(|| self.shared.file.as_fd())
    }

    /// Input has arrived that was not there when the command started.
    pub(crate) fn arrived(&self) {
        let now = self.look();
        let mut state = self.state();
        // Whether the writer was gone before the command started stays as it was seen then.
        state.seen = Seen { writer_gone: state.seen.writer_gone, ..now };
    }

    /// Whether reads of a terminal have still to be watched for.
    pub(crate) fn is_unwatched_terminal(&self) -> bool {
        self.shared.kind == Kind::Terminal && self.state().reads.is_none()
    }

    /// Asks the system to tell of each read of the terminal. The time of its last read is not
    /// enough: it is rounded to eight seconds. Closing the watch takes the kernel some 25 ms, so it
    /// is not made for commands that end before anybody can type.
    pub(crate) fn watch_reads(&self) {
        self.state().reads = watch_reads(&self.shared.file);
    }

    /// The attempt is over: notes whether it took anything.
    pub(crate) fn ended(&self) {
        let mut state = self.state();
        if state.from_copy || state.taken {
            return;
        }
        let (before, now) = (&state.seen, self.look());
        let (taken, unsure) = match self.shared.kind {
            Kind::Terminal => {
                let was_read = state.reads.as_ref().is_some_and(has_events);
                (was_read || now.read_at != before.read_at, false)
            }
            Kind::Pipe | Kind::Socket => {
                let taken = now.bytes < before.bytes || !now.beginning.starts_with(&before.beginning);
                let unsure = now.writer_gone && !before.writer_gone && now.bytes == 0;
                (taken || unsure, unsure && !taken)
            }
        };
        (state.taken, state.unsure) = (taken, unsure);
    }

    /// Why another attempt cannot get the same input, if it cannot.
    pub(crate) fn unrepeatable(&self) -> Option<String> {
        let state = self.state();
        if !state.taken || state.copy.is_some() {
            return None;
        }
        Some(match self.shared.kind {
            Kind::Terminal => {
                "it read from the terminal: what was typed cannot be given to another attempt".to_owned()
            }
            Kind::Pipe | Kind::Socket if state.unsure => {
                "its standard input ended while it ran, and it may have read from it; with `--stdin \
                 replay` it is stored and can be given to another attempt"
                    .to_owned()
            }
            Kind::Pipe | Kind::Socket => "it read from standard input, and what it read cannot be given to \
                                          another attempt; with `--stdin replay` it is stored and can be"
                .to_owned(),
        })
    }

    fn look(&self) -> Seen {
        let file = &self.shared.file;
        if self.shared.kind == Kind::Terminal {
            use std::os::unix::fs::MetadataExt;
            return Seen { read_at: file.metadata().map_or(0, |meta| meta.atime()), ..Seen::default() };
        }
        let hung_up = PollFlags::HUP;
        #[cfg(target_os = "linux")]
        let hung_up = hung_up | PollFlags::RDHUP;
        let mut polled = [PollFd::new(file, PollFlags::IN | hung_up)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = rustix::event::poll(&mut polled, Some(&now));
        let writer_gone = polled[0].revents().intersects(hung_up);
        let bytes = rustix::io::ioctl_fionread(file).unwrap_or(0);
        let compared = usize::try_from(bytes).unwrap_or(usize::MAX).min(COMPARED_BYTES);
        let beginning = if compared > 0 { self.peek(compared).unwrap_or_default() } else { Vec::new() };
        Seen { bytes, beginning, writer_gone, read_at: 0 }
    }

    /// The next bytes, without taking them.
    fn peek(&self, bytes: usize) -> Option<Vec<u8>> {
        match self.shared.kind {
            Kind::Pipe => peek_pipe(&self.shared.file, bytes),
            Kind::Socket => peek_socket(&self.shared.file, bytes),
            Kind::Terminal => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch for reads of a terminal.
#[cfg(target_os = "linux")]
fn watch_reads(terminal: &File) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    let path = rustix::termios::ttyname(terminal, Vec::new()).ok()?;
    let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    add_watch(&watch, path, WatchFlags::ACCESS).ok()?;
    Some(watch)
}

#[cfg(not(target_os = "linux"))]
fn watch_reads(_: &File) -> Option<OwnedFd> {
    None
}

fn has_events(watch: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(watch, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(1..))
}

/// Duplicates what is in a pipe into another one, and reads that.
#[cfg(target_os = "linux")]
fn peek_pipe(pipe: &File, bytes: usize) -> Option<Vec<u8>> {
    use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, tee};
    use std::io::Read;
    let (reader, writer) = std::io::pipe().ok()?;
    let size = fcntl_getpipe_size(pipe).ok()?;
    if fcntl_getpipe_size(&writer).ok()? < size {
        fcntl_setpipe_size(&writer, size).ok()?;
    }
    let teed = tee(pipe, &writer, bytes, SpliceFlags::NONBLOCK).ok()?;
    drop(writer);
    let mut content = Vec::new();
    reader.take(teed as u64).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(not(target_os = "linux"))]
fn peek_pipe(_: &File, _: usize) -> Option<Vec<u8>> {
    None
}

fn peek_socket(socket: &File, bytes: usize) -> Option<Vec<u8>> {
    use std::os::fd::AsRawFd;
    let mut content = vec![0; bytes];
    // SAFETY: the buffer is as long as is said, and the descriptor is open.
    let read = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            content.as_mut_ptr().cast(),
            content.len(),
            libc::MSG_PEEK | libc::MSG_DONTWAIT,
        )
    };
    content.truncate(usize::try_from(read).ok()?);
    Some(content)
}
