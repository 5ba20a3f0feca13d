//! What the process gives to the runtime: time, random numbers, who it is, and where words for
//! people go.
//!
//! Libraries read no clock, no environment and no terminal. Whoever starts a run fills in a
//! [`Process`] once; everything below asks it.

use backstop_core::{BootTime, RunId, SafeText, Timestamp, Zone};
use backstop_exec::tree;
use backstop_http::{Client, Proxies};
use backstop_store::{CommitHook, ProcessId};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// Makes time pass in place of waiting, where time is simulated.
    pub pass_time: Option<fn(Duration)>,
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

    /// Waits. Where time is simulated, it passes at once.
    pub(crate) fn sleep(&self, time: Duration) {
        match self.pass_time {
            Some(pass_time) => pass_time(time),
            None => std::thread::sleep(time),
        }
    }

    /// The local time zone.
    pub fn zone(&self) -> Zone {
        (self.zone)()
    }

    /// A random number from 0 up to 1.
    pub fn random_unit(&self) -> f64 {
        unit((self.random)())
    }

    /// An HTTP client that goes through the proxies which the environment names.
    pub fn http_client(&self) -> Client {
        Client::builder().proxies(Proxies::from_variables(self.variable)).build()
    }

    /// The same, which keeps more connections open for the next request.
    pub fn http_client_keeping(&self, to_one_server: usize, in_all: usize) -> Client {
        let proxies = Proxies::from_variables(self.variable);
        Client::builder().proxies(proxies).keep_connections(to_one_server, in_all).build()
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

/// The largest file that is read as the description of a time zone.
const ZONE_FILE_BYTES_MAX: u64 = 64 << 10;

/// The local time zone: what the variable `TZ` says, else what `/etc/localtime` is; UTC where
/// neither can be read.
pub fn zone(tz: Option<&OsStr>) -> Zone {
    let read = |path: &str| {
        let mut data = Vec::new();
        std::fs::File::open(path).ok()?.take(ZONE_FILE_BYTES_MAX).read_to_end(&mut data).ok()?;
        Zone::from_file("local", &data)
    };
    let Some(value) = tz else { return read("/etc/localtime").unwrap_or_default() };
    let value = value.to_string_lossy();
    let name = value.strip_prefix(':').unwrap_or(&value);
    if name.starts_with('/') { read(name) } else { Zone::from_variable(name) }.unwrap_or_default()
}

/// Whether a program is found in the folders of `search_path`, the value of the variable `PATH`.
pub fn is_found(program: &str, search_path: Option<&OsStr>) -> bool {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return runs(Path::new(program));
    }
    search_path.is_some_and(|path| std::env::split_paths(path).any(|folder| runs(&folder.join(program))))
}

/// A hook that kills this process at its n-th commit, as hard as it gets: for tests that show that
/// nothing acknowledged is lost.
pub fn kill_at_commit(n: u64) -> CommitHook {
    let seen = AtomicU64::new(0);
    Arc::new(move |_| {
        if seen.fetch_add(1, Ordering::SeqCst) + 1 == n {
            // Nothing is flushed, nobody is told.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    })
}
