//! Passes one output stream of the command through, and stores its beginning and end.

use crate::keeper::{self, Keeper};
use crate::mailbox::Mailbox;
use crate::output_terminal::OutputReader;
use crate::stream_order::StreamOrder;
use crate::supervise::Message;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many bytes are read at once: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;
/// The capacity that a full pipe is enlarged to, so that the two processes switch less often.
const PIPE_BYTES: usize = 1 << 20;

/// How long to wait before a write to a full non-blocking pipe is repeated.
const PATIENCE: Duration = Duration::from_millis(2);

/// The time at which the command last wrote something.
#[derive(Debug)]
pub(crate) struct Activity {
    origin: Instant,
    last_ms: AtomicU64,
    /// The number of threads blocked on writing to our own reader. Time spent so is not the
    /// command's silence.
    blocked: AtomicU32,
}

impl Activity {
    pub(crate) fn new(origin: Instant) -> Self {
        Self { origin, last_ms: AtomicU64::new(0), blocked: AtomicU32::new(0) }
    }

    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// Milliseconds from the start to the last activity.
    pub(crate) fn last_ms(&self) -> u64 {
        if self.blocked.load(Ordering::Relaxed) > 0 {
            self.touch();
        }
        self.last_ms.load(Ordering::Relaxed)
    }
}

/// The stored output of a stream, which can be taken while a process still holds the stream open.
pub(crate) type SharedKeeper = Arc<Mutex<Keeper>>;

/// Where the output of a command is read.
#[derive(Debug)]
pub(crate) enum Source {
    /// A pipe, or a pseudo-terminal of the command's own.
    File(File),
    /// A pseudo-terminal for output alone.
    Terminal(OutputReader),
}

impl Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<Range<usize>> {
        match self {
            Source::File(file) => file.read(buffer).map(|read| 0..read),
            Source::Terminal(reader) => reader.read(buffer),
        }
    }

    /// The stream has ended, and nothing was written to it.
    pub(crate) fn ended(&mut self) {
        if let Source::Terminal(reader) = self {
            reader.follow();
        }
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Source::File(file) => file.as_fd(),
            Source::Terminal(reader) => reader.as_fd(),
        }
    }
}

/// An output stream of the command that is passed on.
pub(crate) struct Stream {
    pub(crate) from: Source,
    pub(crate) to: Box<dyn Write + Send>,
    pub(crate) kept: SharedKeeper,
    pub(crate) order: SharedOrder,
}

/// The order of both streams, which their threads write to, and the number of one of them.
pub(crate) struct SharedOrder {
    pub(crate) order: Arc<Mutex<StreamOrder>>,
    pub(crate) stream: usize,
}

impl SharedOrder {
    /// So many bytes of this stream were read next.
    fn push(&self, bytes: usize) {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).push(self.stream, bytes);
    }
}

/// Starts a thread that passes a stream on.
pub(crate) fn start(stream: Stream, activity: Arc<Activity>, done: Mailbox) -> std::io::Result<()> {
    let Stream { mut from, mut to, kept: shared, order } = stream;
    let run = move || {
        let mut buffer = vec![0; READ_BYTES];
        let mut widened = false;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(read) if read.is_empty() => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A pseudo-terminal whose other side is closed returns an error.
                Err(_) => break,
            };
            activity.touch();
            order.push(read.len());
            let full = read.len() == READ_BYTES;
            let lines = keeper::lines(&buffer[read.clone()]);
            activity.blocked.fetch_add(1, Ordering::Relaxed);
            let written = write_patiently(&mut *to, &buffer[read.clone()]);
            activity.blocked.fetch_sub(1, Ordering::Relaxed);
            let capacity = buffer.capacity();
            buffer = shared.lock().unwrap_or_else(PoisonError::into_inner).push(buffer, read, lines);
            buffer.resize(capacity, 0);
            if let Err(error) = written {
                // Nobody reads our output any more. Closing our end tells the command, as it would
                // without us.
                done.send(match error.kind() {
                    ErrorKind::BrokenPipe => Message::ReaderLeft,
                    _ => Message::Unwritable(error),
                });
                break;
            }
            if full && !widened {
                widened = true;
                widen(&from, &mut buffer);
            }
        }
        let _ = to.flush();
        drop(from);
        done.send(Message::Drained);
    };
    std::thread::Builder::new().name("stream".to_owned()).stack_size(128 << 10).spawn(run).map(|_| ())
}

/// Writes all bytes. Waits and repeats where the file is in non-blocking mode.
pub fn write_patiently(to: &mut (impl Write + ?Sized), mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PATIENCE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Enlarges a busy pipe, where the system allows it.
fn widen(from: &Source, buffer: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    if let Source::File(from) = from
        && let Ok(size) = rustix::pipe::fcntl_setpipe_size(from, PIPE_BYTES)
    {
        buffer.resize(size.min(PIPE_BYTES / 4), 0);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (from, buffer);
}
