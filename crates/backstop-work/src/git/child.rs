//! One run of a program: bounded time, bounded output, and nothing left of it when the time is up.
//!
//! It must not know what is run or what the output means. It reads the monotonic clock: a process runs in real time.
#![allow(clippy::disallowed_methods)] // The monotonic clock: the limit of a process is in real time.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait between two looks at a child, at first and at most.
const LOOK_FIRST: Duration = Duration::from_micros(500);
const LOOK_MAX: Duration = Duration::from_millis(20);

/// How long output is waited for after the end, where something that was left behind holds the pipe open.
const DRAIN: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Debug)]
pub(crate) struct ChildResult {
    /// The exit code; 128 + n where a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// There was more output than is kept.
    pub(crate) cut: bool,
    /// It took too long and was killed.
    pub(crate) timed_out: bool,
}

/// The bounds of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    pub(crate) stdout_bytes_max: usize,
    pub(crate) stderr_bytes_max: usize,
}

#[derive(Debug, Default)]
struct CappedOutput {
    bytes: Vec<u8>,
    cut: bool,
}

type Shared = Arc<Mutex<CappedOutput>>;

/// Runs a command to its end, or to the end of its time.
pub(crate) fn run(
    mut command: Command,
    stdin: Option<Vec<u8>>,
    bounds: Bounds,
) -> Result<ChildResult, std::io::Error> {
    let end = Instant::now() + bounds.time;
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let feeder = child.stdin.take().zip(stdin).map(|(mut pipe, bytes)| {
        // A child that does not read all of it says why in its exit code.
        std::thread::spawn(move || drop(pipe.write_all(&bytes)))
    });
    let readers = [
        child.stdout.take().map(|pipe| reader(pipe, bounds.stdout_bytes_max)),
        child.stderr.take().map(|pipe| reader(pipe, bounds.stderr_bytes_max)),
    ];
    let status = wait(&mut child, end)?;
    let timed_out = status.is_none();
    let status = match status {
        Some(status) => status,
        None => kill(&mut child)?,
    };
    let drained = Instant::now() + DRAIN;
    let done = |handle: &JoinHandle<()>| handle.is_finished() || Instant::now() >= drained;
    for handle in readers.iter().flatten().map(|(_, handle)| handle).chain(&feeder) {
        let mut pause = LOOK_FIRST;
        while !done(handle) {
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOOK_MAX);
        }
    }
    let [stdout, stderr] = readers.map(|reader| reader.map(|(shared, _)| taken(&shared)).unwrap_or_default());
    Ok(ChildResult {
        code: code(status),
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        cut: stdout.cut,
        timed_out,
    })
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|n| 128 + n)).unwrap_or(255)
}

fn wait(child: &mut Child, end: Instant) -> Result<Option<ExitStatus>, std::io::Error> {
    let mut pause = LOOK_FIRST;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_MAX);
    }
}

/// Kills it with everything in its process group: a hook or a filter that it waits for too.
fn kill(child: &mut Child) -> Result<ExitStatus, std::io::Error> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now: then there is nobody to kill.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    child.wait()
}

fn reader(mut pipe: impl Read + Send + 'static, bytes_max: usize) -> (Shared, JoinHandle<()>) {
    let shared = Shared::default();
    let kept = Arc::clone(&shared);
    let handle = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = bytes_max - kept.bytes.len();
                    kept.bytes.extend_from_slice(&buffer[..n.min(room)]);
                    kept.cut |= n > room;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    (shared, handle)
}

fn taken(shared: &Shared) -> CappedOutput {
    std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, stdin: Option<Vec<u8>>, time: Duration) -> ChildResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, stdin, Bounds { time, stdout_bytes_max: 100_000, stderr_bytes_max: 10 }).unwrap()
    }

    #[test]
    fn what_goes_in_comes_out_and_no_more_is_kept_than_may_be() {
        let long = Duration::from_secs(60);
        let ended = sh("cat; echo 0123456789abc >&2; exit 3", Some(b"hello".to_vec()), long);
        assert_eq!((ended.code, ended.stdout.as_slice(), ended.cut), (3, b"hello".as_slice(), false));
        assert_eq!(ended.stderr, b"0123456789");
        assert!(sh("head -c 200000 /dev/zero", None, long).cut);
        assert_eq!(sh("kill -9 $$", None, long).code, 137);
        // Nobody reads it.
        assert_eq!(sh("exit 0", Some(vec![0; 1 << 20]), long).code, 0);
    }

    #[test]
    fn a_child_that_hangs_is_killed_with_its_own_children() {
        let whole = Duration::from_secs(3600);
        let begin = Instant::now();
        let ended = sh(&format!("sleep {} | cat", whole.as_secs()), None, Duration::from_millis(50));
        assert!(ended.timed_out);
        assert!(begin.elapsed() < whole, "it was not waited for");
    }
}
