//! The command's standard input: inherited, or passed on and stored so that a retry reads the same.

use crate::Watched;
use crate::pump::write_patiently;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes are read and written at once.
const CHUNK_BYTES: usize = 64 << 10;
/// How many bytes may be in memory beyond the attempt's position, once the cap is passed.
const AHEAD_BYTES: usize = 256 << 10;

/// Where a command's standard input comes from.
#[derive(Debug, Clone)]
pub enum Input {
    /// The same as ours.
    Inherit,
    /// The same as ours, watched so that another attempt is made only if it reads the same.
    Watched(Watched),
    /// Empty (`/dev/null`).
    Null,
    /// Closed, as ours is.
    Closed,
    /// A file, read from the same position by every attempt.
    File {
        /// The file.
        file: Arc<File>,
        /// The position in bytes at which every attempt starts.
        from: u64,
    },
    /// The reading end of a pipe, as it is: for a command that is talked to while it runs.
    Pipe(Arc<File>),
    /// A pipe whose content is stored up to a cap, and given to every attempt.
    Replay(Replay),
}

impl Input {
    /// These bytes, for one command. It need not read them.
    pub fn bytes(bytes: Vec<u8>) -> std::io::Result<Self> {
        let (reader, mut writer) = std::io::pipe()?;
        // On a thread of its own: a command that does not read its input must not block us.
        let write = move || {
            let _ = writer.write_all(&bytes);
        };
        std::thread::Builder::new().name("input".to_owned()).stack_size(128 << 10).spawn(write)?;
        Ok(Input::Replay(Replay::new(File::from(OwnedFd::from(reader)), CHUNK_BYTES)))
    }

    /// Our standard input, where an attempt inherits it and it must be watched.
    pub(crate) fn watched(&self) -> Option<&Watched> {
        match self {
            Input::Watched(watched) => Some(watched),
            _ => None,
        }
    }

    /// Rewinds a file, so that this attempt reads the same input as the first.
    pub(crate) fn rewind(&self) -> std::io::Result<()> {
        match self {
            Input::File { file, from } => (&**file).seek(SeekFrom::Start(*from)).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Why another attempt cannot get the same input, if it cannot.
    pub fn unrepeatable(&self) -> Option<String> {
        match self {
            Input::Replay(replay) if replay.is_gone() => Some(format!(
                "more than {} bytes of standard input were read: they are gone, and cannot be given to another attempt",
                replay.shared.bytes_max
            )),
            Input::Watched(watched) => watched.unrepeatable(),
            _ => None,
        }
    }
}

/// A pipe whose content is stored up to a cap and given to every attempt from its beginning.
#[derive(Debug, Clone)]
pub struct Replay {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: usize,
}

#[derive(Debug)]
struct State {
    source: Option<File>,
    /// The stored bytes, from position `base` on.
    kept: Vec<u8>,
    base: u64,
    ended: bool,
    passed_cap: bool,
    /// The attempt that may read now; the threads of earlier attempts give up.
    attempt: u64,
    /// The position up to which that attempt has read.
    taken: u64,
    /// Whether nothing is stored: typed input belongs to the attempt that was running.
    forgets: bool,
}

impl State {
    /// Beyond the cap, drops the bytes that were read, to make room.
    fn trim(&mut self) {
        if self.passed_cap {
            let used =
                usize::try_from(self.taken.saturating_sub(self.base)).unwrap_or(0).min(self.kept.len());
            self.kept.drain(..used);
            self.base += used as u64;
        }
    }
}

impl Replay {
    /// Stores at most `bytes_max` bytes of `source`. Nothing is read before the first attempt.
    pub fn new(source: File, bytes_max: usize) -> Self {
        let state = State {
            source: Some(source),
            kept: Vec::new(),
            base: 0,
            ended: false,
            passed_cap: false,
            attempt: 0,
            taken: 0,
            forgets: false,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), bytes_max }) }
    }

    /// Gives these bytes to every attempt.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let state = State {
            source: None,
            kept: bytes,
            base: 0,
            ended: true,
            passed_cap: false,
            attempt: 0,
            taken: 0,
            forgets: false,
        };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), bytes_max: usize::MAX };
        Self { shared: Arc::new(shared) }
    }

    /// Passes input on while an attempt runs and stores nothing: for input typed at a terminal.
    pub fn forward(source: File) -> Self {
        let replay = Self::new(source, 0);
        {
            let mut state = replay.state();
            state.forgets = true;
            state.passed_cap = true;
        }
        replay
    }

    /// Whether a part of the input can no longer be given to another attempt.
    fn is_gone(&self) -> bool {
        let state = self.state();
        state.passed_cap && !state.forgets
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the input to one attempt, from the beginning, on a thread of its own.
    pub(crate) fn feed(&self, mut to: Box<dyn Write + Send>) -> std::io::Result<()> {
        let (attempt, source) = {
            let mut state = self.state();
            state.attempt += 1;
            state.taken = if state.forgets { state.base + state.kept.len() as u64 } else { 0 };
            state.trim();
            (state.attempt, state.source.take())
        };
        self.shared.changed.notify_all();
        if let Some(source) = source {
            let reader = self.clone();
            spawn(move || reader.read(source))?;
        }
        let writer = self.clone();
        spawn(move || writer.write(attempt, &mut *to))
    }

    fn read(&self, mut source: File) {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The source is in non-blocking mode: wait here.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_readable(&source);
                    continue;
                }
                Err(_) => 0,
            };
            let mut state = self.state();
            if read == 0 {
                state.ended = true;
                self.shared.changed.notify_all();
                return;
            }
            state.passed_cap |= state.kept.len() + read > self.shared.bytes_max;
            state.trim();
            // The attempt may have taken everything before the cap was passed.
            while state.passed_cap && state.kept.len() > AHEAD_BYTES {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.kept.extend_from_slice(&buffer[..read]);
            drop(state);
            self.shared.changed.notify_all();
        }
    }

    fn write(&self, attempt: u64, to: &mut dyn Write) {
        loop {
            let mut state = self.state();
            let chunk = loop {
                if state.attempt != attempt {
                    return;
                }
                let from = usize::try_from(state.taken.saturating_sub(state.base)).unwrap_or(usize::MAX);
                if from < state.kept.len() {
                    let to = state.kept.len().min(from + CHUNK_BYTES);
                    break state.kept[from..to].to_vec();
                }
                if state.ended {
                    return;
                }
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.taken += chunk.len() as u64;
            state.trim();
            drop(state);
            self.shared.changed.notify_all();
            if write_patiently(to, &chunk).is_err() {
                // The command no longer reads its input.
                return;
            }
        }
    }
}

/// Waits until the source is readable.
fn wait_readable(source: &File) {
    let mut watched = [rustix::event::PollFd::new(source, rustix::event::PollFlags::IN)];
    let _ = rustix::event::poll(&mut watched, None);
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("input".to_owned()).stack_size(128 << 10).spawn(run).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects what an attempt is fed, and tells when it is over.
    struct Sink(std::sync::mpsc::Sender<Vec<u8>>, Vec<u8>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Drop for Sink {
        fn drop(&mut self) {
            let _ = self.0.send(std::mem::take(&mut self.1));
        }
    }

    fn fed(replay: &Replay) -> Vec<u8> {
        let (to, from) = std::sync::mpsc::channel();
        replay.feed(Box::new(Sink(to, Vec::new()))).unwrap();
        from.recv().unwrap()
    }

    fn pipe(content: Vec<u8>) -> File {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::thread::spawn(move || {
            let _ = writer.write_all(&content);
        });
        File::from(OwnedFd::from(reader))
    }

    #[test]
    fn every_attempt_gets_the_same() {
        let replay = Replay::new(pipe(b"abc".repeat(1000)), 8 << 20);
        for _ in 0..3 {
            assert_eq!(fed(&replay), b"abc".repeat(1000));
        }
        assert_eq!(Input::Replay(replay).unrepeatable(), None);
    }

    #[test]
    fn a_source_that_is_slower_than_its_reader_passes_the_cap_too() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let replay = Replay::new(File::from(OwnedFd::from(reader)), 1 << 20);
        let feeder = std::thread::spawn(move || {
            for _ in 0..40 {
                writer.write_all(&[7; 64 << 10]).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        assert_eq!(fed(&replay).len(), 40 * (64 << 10));
        feeder.join().unwrap();
    }

    #[test]
    fn what_is_typed_belongs_to_the_attempt_that_runs() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let replay = Replay::forward(File::from(OwnedFd::from(reader)));
        writer.write_all(b"typed").unwrap();
        drop(writer);
        assert_eq!(fed(&replay), b"typed");
        assert_eq!(fed(&replay), b"");
        assert_eq!(Input::Replay(replay).unrepeatable(), None);
    }

    #[test]
    fn beyond_the_cap_all_comes_through_once() {
        let content: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let replay = Replay::new(pipe(content.clone()), 1000);
        assert!(fed(&replay) == content);
        assert!(Input::Replay(replay).unrepeatable().unwrap().contains("1000 bytes"));
    }
}
