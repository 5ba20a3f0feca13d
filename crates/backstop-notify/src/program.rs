//! Runs a program once with a text on its standard input. No process that it starts is left behind.

use backstop_core::{Dispatch, Fault, Reason, SafeText};
use backstop_engine::Failed;
use backstop_exec::{Input, Limits, Replay, Spec, Stop, Streams, supervise};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many bytes of its output are stored.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// The result of the program.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    /// The exit code, if there is one.
    pub(super) exit: Option<i64>,
    /// Whether the time limit ended it.
    pub(super) timed_out: bool,
    /// Its standard output.
    pub(super) stdout: Vec<u8>,
    /// Its standard error.
    pub(super) stderr: Vec<u8>,
}

/// Runs the program with these arguments, without a shell.
pub(super) fn run(
    argv: &[String],
    folder: Option<&Path>,
    input: &[u8],
    wall: Duration,
) -> Result<Ran, Failed> {
    // Several may run at once: this number marks the processes of each.
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let mark = format!("notify.{}.{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let (reader, mut writer) = std::io::pipe().map_err(Failed::from)?;
    let input = input.to_vec();
    // On a thread of its own: a program that does not read its input must not block us.
    let write = move || {
        let _ = writer.write_all(&input);
    };
    std::thread::Builder::new().name("notify-input".to_owned()).spawn(write).map_err(Failed::from)?;
    let spec = Spec {
        argv: argv.iter().map(Into::into).collect(),
        folder: folder.map(Path::to_owned),
        env: vec![("BACKSTOP_RUN_MARK".to_owned(), mark)],
        limits: Limits {
            wall: Some(wall),
            grace: GRACE,
            kept_bytes_max: KEPT_BYTES_MAX,
            ..Limits::default()
        },
        ..Spec::default()
    };
    let streams = Streams {
        stdout: Box::new(std::io::sink()),
        stderr: Box::new(std::io::sink()),
        input: Input::Replay(Replay::new(File::from(OwnedFd::from(reader)), KEPT_BYTES_MAX)),
    };
    let ended = supervise(&spec, streams, &Stop::new(), |_| {}).map_err(|error| {
        let mut fault = Fault::new(Reason::DependencyMissing);
        fault.cause = Some(SafeText::new(error.to_string()));
        Failed::classified(fault, Dispatch::NotDispatched)
    })?;
    Ok(Ran {
        exit: ended.status.code.map(i64::from),
        timed_out: ended.timed_out(),
        stdout: ended.stdout.head().to_vec(),
        stderr: ended.stderr.end(2048),
    })
}
