//! Runs a program once with a text on its standard input. No process that it starts is left behind.

use backstop_core::{Dispatch, Fault, Reason, SafeText};
use backstop_engine::Failed;
use backstop_exec::{Input, Limits, Spec, Stop, Streams, supervise};
use std::path::Path;
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
    let spec = Spec {
        argv: argv.iter().map(Into::into).collect(),
        folder: folder.map(Path::to_owned),
        // Nobody looks for it later.
        dies_with_us: true,
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
        input: Input::bytes(input.to_vec()).map_err(Failed::from)?,
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
