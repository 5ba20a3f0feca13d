//! One run of git: bounded time, bounded output, and nothing left of it afterwards, its hooks
//! included.
//!
//! It must not know what is run or what the output means.

use super::interrupt::Interrupt;
use backstop_exec::{Cause, Input, Limits, Spec, StartError, Streams, supervise};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time between SIGTERM, upon which git removes its locks, and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// How much of the output is stored a second time, by the supervisor.
const KEPT_BYTES: usize = 1 << 10;

/// The exit code of what was not started because somebody asked for the end: that of SIGTERM.
const INTERRUPTED: i32 = 128 + 15;

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
    /// Somebody asked for its end.
    pub(crate) interrupted: bool,
}

/// The bounds of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    pub(crate) stdout_bytes_max: usize,
    pub(crate) stderr_bytes_max: usize,
}

/// The beginning of a stream.
#[derive(Debug, Clone)]
struct CappedOutput {
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    bytes_max: usize,
}

impl CappedOutput {
    fn new(bytes_max: usize) -> Self {
        Self { kept: Arc::default(), bytes_max }
    }

    /// What was kept, and whether there was more.
    fn taken(&self) -> (Vec<u8>, bool) {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for CappedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.bytes_max - kept.0.len();
        kept.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        kept.1 |= bytes.len() > room;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command to its end, to the end of its time, or until it is interrupted.
pub(crate) fn run(
    mut spec: Spec,
    stdin: Option<Vec<u8>>,
    bounds: Bounds,
    hooks: bool,
    interrupt: &Interrupt,
) -> Result<ChildResult, StartError> {
    let Some(running) = interrupt.begin(hooks) else {
        let none = Vec::new;
        return Ok(ChildResult {
            code: INTERRUPTED,
            stdout: none(),
            stderr: none(),
            cut: false,
            timed_out: false,
            interrupted: true,
        });
    };
    spec.limits =
        Limits { wall: Some(bounds.time), grace: GRACE, kept_bytes_max: KEPT_BYTES, ..Limits::default() };
    spec.dies_with_us = true;
    let program = || spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let input = match stdin {
        Some(bytes) => {
            Input::bytes(bytes).map_err(|error| StartError::System { program: program(), error })?
        }
        None => Input::Null,
    };
    let (stdout, stderr) =
        (CappedOutput::new(bounds.stdout_bytes_max), CappedOutput::new(bounds.stderr_bytes_max));
    let streams = Streams { stdout: Box::new(stdout.clone()), stderr: Box::new(stderr.clone()), input };
    let ended = supervise(&spec, streams, running.stop(), |_| {})?;
    let (stdout, cut) = stdout.taken();
    Ok(ChildResult {
        code: ended.status.exit(),
        stdout,
        stderr: stderr.taken().0,
        cut,
        timed_out: ended.timed_out(),
        interrupted: ended.cause == Cause::Stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, stdin: Option<Vec<u8>>, time: Duration) -> ChildResult {
        let spec = Spec { argv: ["sh", "-c", script].map(Into::into).to_vec(), ..Spec::default() };
        let bounds = Bounds { time, stdout_bytes_max: 100_000, stderr_bytes_max: 10 };
        run(spec, stdin, bounds, false, &Interrupt::default()).unwrap()
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
        let ended = sh("sleep 3600 | cat", None, Duration::from_millis(50));
        assert!(ended.timed_out && !ended.interrupted);
    }

    #[test]
    fn a_child_with_hooks_is_ended_on_request_and_none_is_started_afterwards() {
        let interrupt = Interrupt::default();
        let start = |script: &str, hooks| {
            let spec = Spec { argv: ["sh", "-c", script].map(Into::into).to_vec(), ..Spec::default() };
            let bounds =
                Bounds { time: Duration::from_secs(600), stdout_bytes_max: 100, stderr_bytes_max: 100 };
            run(spec, None, bounds, hooks, &interrupt).unwrap()
        };
        let hangs = std::thread::scope(|scope| {
            let hangs = scope.spawn(|| start("trap '' TERM; sleep 3600", true));
            while !interrupt.is_running() {
                std::thread::yield_now();
            }
            interrupt.hooks();
            hangs.join().unwrap()
        });
        assert!(hangs.interrupted);
        assert!(start("exit 0", true).interrupted, "no hook is started any more");
        assert_eq!(start("exit 4", false).code, 4, "what only saves work is");
    }
}
