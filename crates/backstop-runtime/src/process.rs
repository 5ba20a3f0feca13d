//! What the process gives to the runtime: time, random numbers, who it is, and where words for
//! people go.
//!
//! Libraries read no clock, no environment and no terminal. Whoever starts a run fills in a
//! [`Process`] once; everything below asks it.

use backstop_core::{BootTime, RunId, SafeText, Timestamp, Zone};
use backstop_exec::tree;
use backstop_store::{CommitHook, ProcessId};
use std::path::PathBuf;
use std::sync::Arc;

/// Where words for people go. What is given to it may hold text from outside and secrets: it
/// escapes and redacts.
pub trait Output: Send + Sync {
    /// Something is not as it should be; `hint` is what to do about it.
    fn warn(&self, what: &str, hint: Option<&str>);
    /// A message for people, several lines long, that is rendered already.
    fn message(&self, text: &str);
    /// A command has written its last: whether it left a line without an end where words for people
    /// go.
    fn command_wrote(&self, ends_mid_line: bool) {
        let _ = ends_mid_line;
    }
    /// Whether nothing but errors is wanted.
    fn is_quiet(&self) -> bool {
        false
    }
}

/// No words for anybody.
impl Output for () {
    fn warn(&self, _: &str, _: Option<&str>) {}
    fn message(&self, _: &str) {}
}

/// What the process gives to the runtime.
#[derive(Clone)]
pub struct Process {
    /// The time.
    pub now: fn() -> Timestamp,
    /// The time since the machine was started, sleep included; `None` where that is not known.
    pub boot_time: fn() -> Option<BootTime>,
    /// The local time zone.
    pub zone: fn() -> Zone,
    /// A random number that nobody else has: run ids are made of it.
    pub random: fn() -> u64,
    /// This process, as the store knows it.
    pub id: ProcessId,
    /// Whether a process that the store knows is still there.
    pub is_alive: fn(&ProcessId) -> bool,
    /// The value of an environment variable.
    pub variable: fn(&str) -> Option<String>,
    /// Who called, if known.
    pub caller: Option<SafeText>,
    /// The session of the agent or the person, if known.
    pub session: Option<SafeText>,
    /// The run that this process was started by, if it was.
    pub parent: Option<RunId>,
    /// When that run wants everything to be over.
    pub deadline: Option<Timestamp>,
    /// Whether every recovery is turned off.
    pub disabled: bool,
    /// The current folder.
    pub cwd: PathBuf,
    /// The folder for temporary files.
    pub temp_dir: PathBuf,
    /// Our own program, to start a detached process of it.
    pub program: Option<PathBuf>,
    /// Called around every commit of the journal, in tests.
    pub commit_hook: Option<CommitHook>,
    /// Where words for people go.
    pub output: Arc<dyn Output>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Process {
    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The local time zone.
    pub fn zone(&self) -> Zone {
        (self.zone)()
    }

    /// A random number from 0 up to 1.
    pub fn random_unit(&self) -> f64 {
        unit((self.random)())
    }

    /// Warns people.
    pub fn warn(&self, what: &str, hint: Option<&str>) {
        self.output.warn(what, hint);
    }

    /// What everything below a run is marked with, so that it can be told from all others: the run,
    /// and who began it.
    pub fn mark(&self, run: RunId) -> String {
        mark(run, &self.id)
    }
}

/// A random number as a number from 0 up to 1.
#[expect(clippy::cast_precision_loss)] // 53 bits fit exactly.
pub fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// How many bits of a start time are the time; above them stands which processes are seen. A start
/// is ticks since boot.
const START_BITS: u32 = 48;

/// A start time with the process namespace in which it was seen.
fn with_namespace(start: u64) -> u64 {
    (start & ((1 << START_BITS) - 1)) | (tree::namespace() << START_BITS)
}

/// The current process, as the store knows it.
pub fn current() -> ProcessId {
    let me = tree::Process::current();
    ProcessId { pid: me.pid, start: with_namespace(me.start) }
}

/// Whether a process that wrote a run is still there. One of another namespace (a container, a
/// sandbox) cannot be seen from here: it counts as alive.
pub fn is_alive(process: &ProcessId) -> bool {
    if process.start >> START_BITS != with_namespace(0) >> START_BITS {
        return true;
    }
    tree::Process { pid: process.pid, start: process.start & ((1 << START_BITS) - 1) }.is_alive()
}

/// The mark of a run that this process began.
pub(crate) fn mark(run: RunId, process: &ProcessId) -> String {
    format!("{run}.{}.{:x}", process.pid, process.start)
}
