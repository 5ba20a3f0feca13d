//! One stream on its way through: read, kept, passed on.

use crate::HeadTail;
use crate::supervise::Message;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much is read at once: a pipe holds no more by default.
const READ_BYTES: usize = 64 << 10;
/// What a pipe is widened to once it was seen full: fewer turns between two processes.
const PIPE_BYTES: usize = 1 << 20;

/// How long to wait before a full pipe is tried again.
const PATIENCE: Duration = Duration::from_millis(2);

/// When anything was last written by the command.
#[derive(Debug)]
pub(crate) struct Activity {
    origin: Instant,
    last_ms: AtomicU64,
    /// Somebody is waiting for our own reader: that is not the command's silence.
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

/// What a pump has kept, readable while it still runs.
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
                // A terminal whose other side is closed answers with an error.
                Err(_) => break,
            };
            activity.touch();
            let bytes = &buffer[..read];
            shared.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
            activity.blocked.fetch_add(1, Ordering::Relaxed);
            let written = write_patiently(&mut *to, bytes);
            activity.blocked.fetch_sub(1, Ordering::Relaxed);
            if written.is_err() {
                // Nobody reads any more: closing our end tells the command, as it would without us.
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

/// Writes all of it. Where somebody made it so that writing does not wait, we wait here.
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

/// A busy pipe is made wider, where the system lets us.
fn widen(from: &std::fs::File, buffer: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    if let Ok(size) = rustix::pipe::fcntl_setpipe_size(from, PIPE_BYTES) {
        buffer.resize(size.min(PIPE_BYTES / 4), 0);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (from, buffer);
}
