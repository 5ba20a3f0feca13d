//! Passes one output stream of the command through, and stores its beginning and end.

use crate::HeadTail;
use crate::supervise::Message;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
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

/// The stored output of a stream, readable while the command still runs.
pub(crate) type SharedHeadTail = Arc<Mutex<HeadTail>>;

/// Starts a thread that passes a stream on.
pub(crate) fn start(
    mut from: std::fs::File,
    mut to: Box<dyn Write + Send>,
    kept_bytes_max: usize,
    activity: Arc<Activity>,
    done: Sender<Message>,
) -> std::io::Result<SharedHeadTail> {
    let kept = Arc::new(Mutex::new(HeadTail::new(kept_bytes_max)));
    let shared = Arc::clone(&kept);
    let run = move || {
        let mut buffer = vec![0; READ_BYTES];
        let mut widened = false;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A pseudo-terminal whose other side is closed returns an error.
                Err(_) => break,
            };
            activity.touch();
            let bytes = &buffer[..read];
            shared.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
            activity.blocked.fetch_add(1, Ordering::Relaxed);
            let written = write_patiently(&mut *to, bytes);
            activity.blocked.fetch_sub(1, Ordering::Relaxed);
            if written.is_err() {
                // Nobody reads our output any more. Closing our end tells the command, as it would
                // without us.
                break;
            }
            if read == READ_BYTES && !widened {
                widened = true;
                widen(&from, &mut buffer);
            }
        }
        let _ = to.flush();
        drop(from);
        let _ = done.send(Message::Drained);
    };
    std::thread::Builder::new().name("stream".to_owned()).stack_size(128 << 10).spawn(run)?;
    Ok(kept)
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
fn widen(from: &std::fs::File, buffer: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    if let Ok(size) = rustix::pipe::fcntl_setpipe_size(from, PIPE_BYTES) {
        buffer.resize(size.min(PIPE_BYTES / 4), 0);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (from, buffer);
}
