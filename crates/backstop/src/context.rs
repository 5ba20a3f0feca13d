//! What every command that acts needs: folders, configuration, secrets, the store. Read once, from the process.

use crate::cli::LogFormat;
use crate::error::CliError;
use crate::terminal;
use backstop_config::environment;
use backstop_config::{self as config, Config, Given, Surroundings};
use backstop_core::{Redactor, RunId, Timestamp};
use backstop_exec::tree::Process;
use backstop_store::{Host, Journal, Retention, StateFolder, StoreError, UserStore};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// What every command that acts needs.
pub(crate) struct Context {
    pub(crate) config: Config,
    /// The repository's root, else the current folder.
    pub(crate) project: PathBuf,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) log_format: LogFormat,
    state_root: Option<PathBuf>,
    /// The state folder, once it was opened.
    folder: OnceLock<StateFolder>,
}

impl Context {
    /// Reads the configuration. Flags beat everything else.
    pub(crate) fn new(flags: &[Given], log_format: Option<LogFormat>) -> Result<Self, CliError> {
        Self::within(&surroundings()?, flags, log_format)
    }

    /// As it would be in this folder, without any flags.
    pub(crate) fn at(folder: &Path) -> Result<Self, CliError> {
        Self::within(&Surroundings { cwd: folder.to_owned(), ..surroundings()? }, &[], None)
    }

    fn within(
        around: &Surroundings<'_>,
        flags: &[Given],
        log_format: Option<LogFormat>,
    ) -> Result<Self, CliError> {
        let project = project_of(around);
        let state_root = state_root(around.home.as_deref());
        let is_trusted = |path: &Path, hash: &str| {
            let known = || -> Option<bool> {
                let folder = open_folder(state_root.as_deref()?, Arc::default()).ok()?;
                UserStore::open_existing(&folder).ok()??.is_trusted(path, hash).ok()
            };
            known().unwrap_or(false)
        };
        let config = config::load(around, flags, &is_trusted)?;
        let redactor = Arc::new(terminal::redactor_knowing(&config.redact_env()));
        let log_format = log_format.unwrap_or_else(|| config.log_format());
        Ok(Self { config, project, redactor, log_format, state_root, folder: OnceLock::new() })
    }

    /// The state folder.
    pub(crate) fn folder(&self) -> Result<StateFolder, CliError> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.clone());
        }
        let root = self.state_root.as_deref().ok_or(CliError::NoStateFolder)?;
        let opened = open_folder(root, Arc::clone(&self.redactor))?;
        Ok(self.folder.get_or_init(|| opened).clone())
    }

    /// This project's journal, made where it is not there yet.
    pub(crate) fn journal(&self) -> Result<Journal, CliError> {
        let journal = Journal::open(&self.folder()?, &self.project)?;
        Ok(match crash_hook() {
            Some(hook) => journal.on_commit(hook),
            None => journal,
        })
    }

    /// This project's journal, if there is one.
    pub(crate) fn existing_journal(&self) -> Result<Option<Journal>, CliError> {
        Ok(Journal::open_existing(&self.folder()?, &self.project)?)
    }

    /// What the journal keeps.
    pub(crate) fn retention(&self) -> Retention {
        let store = self.config.store();
        Retention { keep: store.keep, max_bytes: store.bytes_max, ..Retention::default() }
    }

    /// The user's own store.
    pub(crate) fn user_store(&self) -> Result<UserStore, CliError> {
        Ok(UserStore::open(&self.folder()?)?)
    }
}

/// The project that we are in, where nothing of its configuration is needed.
pub(crate) fn project() -> Result<PathBuf, CliError> {
    Ok(project_of(&surroundings()?))
}

fn project_of(around: &Surroundings<'_>) -> PathBuf {
    let root =
        config::repository_root(&around.cwd, around.home.as_deref()).unwrap_or_else(|| around.cwd.clone());
    repository_of_slot(&root, around).unwrap_or(root)
}

/// The repository whose worktree this is, where it is one of ours: what a phase does in its slot, it does in its project.
fn repository_of_slot(root: &Path, around: &Surroundings<'_>) -> Option<PathBuf> {
    let state = state_root(around.home.as_deref())?.canonicalize().ok()?;
    root.canonicalize().ok().filter(|root| root.starts_with(state))?;
    let linked = std::fs::read_to_string(root.join(".git")).ok()?;
    // gitdir: /repository/.git/worktrees/slot-1
    let common = Path::new(linked.strip_prefix("gitdir: ")?.trim()).parent()?.parent()?;
    let repository = common.parent().filter(|_| common.ends_with(".git"))?;
    repository.is_dir().then(|| repository.to_owned())
}

/// Where we are: folders and variables.
pub(crate) fn surroundings() -> Result<Surroundings<'static>, CliError> {
    let cwd = std::env::current_dir().map_err(CliError::NoFolder)?;
    Ok(Surroundings {
        cwd,
        home: folder_variable("HOME"),
        xdg_config_home: folder_variable("XDG_CONFIG_HOME"),
        // What is no UTF-8 is read as far as it goes, and then refused: a bad timeout must not mean no timeout.
        env: &|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
    })
}

/// Whether every recovery is turned off.
pub(crate) fn is_disabled() -> bool {
    std::env::var_os("BACKSTOP_DISABLE").is_some_and(|v| !v.is_empty() && v != "0")
}

/// The run that started this one, and the deadline that it set.
pub(crate) fn outer() -> (Option<RunId>, Option<Timestamp>) {
    let run = told("BACKSTOP_RUN_ID", |id| id.parse().ok());
    let deadline = told("BACKSTOP_DEADLINE", Timestamp::parse_rfc3339);
    (run, deadline)
}

/// What an outer Backstop tells. What cannot be read is not passed over in silence.
fn told<T>(name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = std::env::var_os(name).filter(|v| !v.is_empty())?.to_string_lossy().into_owned();
    let value = read(&text);
    if value.is_none() {
        terminal::warn(&format!("{name} is set to `{text}`, which cannot be read; it does not count"), None);
    }
    value
}

/// Who calls and in which session, where nobody typed it.
pub(crate) fn caller_and_session() -> (Option<String>, Option<String>) {
    (std::env::var("BACKSTOP_CALLER").ok(), std::env::var("BACKSTOP_SESSION").ok())
}

/// Variables that look like ours and are not: a mistake in one must not pass unseen. What it is, and what was meant.
pub(crate) fn strange_variables() -> Vec<(String, String)> {
    let names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("BACKSTOP_"))
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    let told = |(name, near): (String, Option<String>)| {
        let hint = near.map_or_else(
            || "`backstop config env` lists them all".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        (format!("{name} is no variable of Backstop's and does nothing"), hint)
    };
    environment::strangers(names.iter().map(String::as_str)).into_iter().map(told).collect()
}

fn folder_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Where the state folder is, whether it is there or not.
pub(crate) fn state_root(home: Option<&Path>) -> Option<PathBuf> {
    folder_variable("BACKSTOP_STATE_DIR")
        .or_else(|| folder_variable("XDG_STATE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("backstop")))
        .or_else(|| home.map(|home| home.join(".local/state/backstop")))
}

/// The state folder, where nothing of the configuration is needed; nothing where it cannot be used.
pub(crate) fn user_folder() -> Option<StateFolder> {
    let root = state_root(folder_variable("HOME").as_deref())?;
    open_folder(&root, Arc::new(terminal::redactor())).ok()
}

fn open_folder(root: &Path, redactor: Arc<Redactor>) -> Result<StateFolder, StoreError> {
    StateFolder::open(root, Arc::new(now), redactor)
}

/// The time, from the one place that reads the clock on the wall.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis.saturating_add(clock_jump()))
}

/// In debug builds, the clock on the wall can be told to jump after the n-th look at it: `3:-864000000` is ten days back.
#[cfg(debug_assertions)]
fn clock_jump() -> i64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let Ok(jump) = std::env::var("BACKSTOP_CLOCK_JUMP") else { return 0 };
    let Some((after, by)) = jump.split_once(':') else { return 0 };
    let jumped = LOOKS.fetch_add(1, Ordering::Relaxed) >= after.parse().unwrap_or(0);
    if jumped { by.parse().unwrap_or(0) } else { 0 }
}

#[cfg(not(debug_assertions))]
fn clock_jump() -> i64 {
    0
}

/// A number that nobody else has: what run ids are made of.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// This process, as the store knows it.
pub(crate) fn host() -> Host {
    let me = Process::current();
    Host { pid: me.pid, start: marked(me.start) }
}

/// How many bits of a start time are the time; above them stands which processes are seen. A start is ticks since boot.
const START_BITS: u32 = 48;

/// A start time with the namespace in which it was seen.
fn marked(start: u64) -> u64 {
    (start & ((1 << START_BITS) - 1)) | (backstop_exec::tree::namespace() << START_BITS)
}

/// Whether a process that wrote a run is still there. One of another namespace (a container, a sandbox) cannot be seen from
/// here: it is not ours to judge.
pub(crate) fn is_alive(host: &Host) -> bool {
    if host.start >> START_BITS != marked(0) >> START_BITS {
        return true;
    }
    Process { pid: host.pid, start: host.start & ((1 << START_BITS) - 1) }.is_alive()
}

/// What everything below a run is marked with, so that it can be told from all others: the run, and who began it.
pub(crate) fn mark(run: RunId, host: &Host) -> String {
    format!("{run}.{}.{:x}", host.pid, host.start)
}

/// In debug builds, the process can be told to die at the n-th commit, before or after it: for tests that show that nothing
/// acknowledged is lost.
#[cfg(debug_assertions)]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    use std::sync::atomic::{AtomicU64, Ordering};
    let at: u64 = std::env::var("BACKSTOP_CRASH_AT").ok()?.parse().ok()?;
    let seen = AtomicU64::new(0);
    Some(Arc::new(move |_| {
        if seen.fetch_add(1, Ordering::SeqCst) + 1 == at {
            // As hard as it gets: nothing is flushed, nobody is told.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }))
}

#[cfg(not(debug_assertions))]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    None
}
