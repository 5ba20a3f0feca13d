//! The one place that reads the environment, the clock and random numbers, and opens projects.

use crate::error::{CliError, failed};
use crate::terminal::{self, Terminal};
use backstop_config::{Given, LogFormat, Surroundings, environment};
use backstop_core::{BootTime, RunId, SafeText, Timestamp, Zone};
use backstop_runtime::{Place, Process, Project, ProjectError, process, project};
use backstop_store::StateFolder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub(crate) use backstop_runtime::process::is_alive;

/// The project around the current folder, under these flags. Problems in its config files are a
/// warning: a typing mistake must not stop every command.
pub(crate) fn open(flags: &[Given], log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let project = open_quietly(flags, log_format)?;
    terminal::warn_problems(&project.config);
    Ok(project)
}

/// Opens the project for a run that nobody watches: refused where a config file or variable has
/// problems, because limits, gates and notifications that were asked for would be missing for
/// hours.
pub(crate) fn open_strictly(flags: &[Given], log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let project = open_quietly(flags, log_format)?;
    match project.config.problems() {
        Some(error) => Err(CliError::from(error).hint(
            "a plan is not started with settings that cannot be read: `backstop config check` lists them",
        )),
        None => Ok(project),
    }
}

/// Opens the project without a warning about problems in its config files.
pub(crate) fn open_quietly(flags: &[Given], log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let format = log_format.map(|format| Given {
        flag: "--log-format".to_owned(),
        key: "log.format".to_owned(),
        value: format.name().to_owned(),
    });
    let flags: Vec<Given> = flags.iter().cloned().chain(format).collect();
    Ok(open_in(surroundings()?, &flags)?)
}

/// The project around a folder, without any flags.
pub(crate) fn open_at(folder: &Path) -> Result<Project, ProjectError> {
    open_in(surroundings_of(folder.to_owned()), &[])
}

fn open_in(surroundings: Surroundings<'static>, flags: &[Given]) -> Result<Project, ProjectError> {
    let process = this(surroundings.cwd.clone());
    let mut project = Project::open(&place(surroundings), flags, process)?;
    terminal::redact_with(Arc::clone(&project.redactor));
    // What cannot be read is shown: only now is it known what in it is a secret.
    let process = Arc::make_mut(&mut project.process);
    process.parent = from_outer("BACKSTOP_RUN_ID", |id| id.parse::<RunId>().ok());
    process.deadline = from_outer("BACKSTOP_DEADLINE", Timestamp::parse_rfc3339);
    Ok(project)
}

/// Lets this process have as many files and connections open as the system allows it.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, there are fewer connections.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The folder of the project that we are in, where nothing of its configuration is needed.
pub(crate) fn root() -> Result<PathBuf, CliError> {
    Ok(project::root_of(&place(surroundings()?)))
}

fn place(surroundings: Surroundings<'static>) -> Place<'static> {
    Place { surroundings, variables: variables() }
}

/// Every variable that is text.
pub(crate) fn variables() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Where we are: folders and variables.
pub(crate) fn surroundings() -> Result<Surroundings<'static>, CliError> {
    let cwd = std::env::current_dir().or_else(|error| removed_folder().ok_or(error)).map_err(|error| {
        failed(format!("cannot find the current folder: {error}")).hint("change into a folder that exists")
    })?;
    Ok(surroundings_of(cwd))
}

/// The path that the current folder had, where somebody has removed it: commands run there all the
/// same.
fn removed_folder() -> Option<PathBuf> {
    let path = folder_variable("PWD").or_else(|| {
        let link = std::fs::read_link("/proc/self/cwd").ok()?;
        Some(PathBuf::from(link.to_str()?.strip_suffix(" (deleted)")?))
    });
    path.filter(|path| path.is_absolute() && !path.exists())
}

fn surroundings_of(cwd: PathBuf) -> Surroundings<'static> {
    let home = home();
    Surroundings {
        cwd,
        state_root: state_root(home.as_deref()),
        home,
        xdg_config_home: folder_variable("XDG_CONFIG_HOME"),
        // What is no UTF-8 is read as far as it goes, and then warned of: a bad timeout must not
        // pass unseen.
        env: &|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        users: users(),
    }
}

/// The users whose files are read: the one whom we run as. Root by `sudo` works for the one who
/// typed it, as git has it.
fn users() -> Vec<u32> {
    let us = rustix::process::geteuid();
    let typed = || std::env::var("SUDO_UID").ok()?.parse().ok();
    std::iter::once(us.as_raw()).chain(us.is_root().then(typed).flatten()).collect()
}

/// This process, as the runtime knows it.
fn this(cwd: PathBuf) -> Process {
    let text = |name: &str| std::env::var(name).ok().map(SafeText::new);
    Process {
        now,
        boot_time,
        pass_time: simulated::pass_time(),
        zone,
        random,
        id: process::current(),
        is_alive,
        variable: |name| std::env::var(name).ok(),
        caller: text("BACKSTOP_CALLER"),
        session: text("BACKSTOP_SESSION"),
        parent: None,
        deadline: None,
        disabled: is_disabled(),
        cwd,
        temp_dir: std::env::temp_dir(),
        program: std::env::current_exe().ok(),
        commit_hook: crash_hook(),
        output: Arc::new(Terminal),
    }
}

/// The local time zone: what `TZ` says, else what the system has set.
pub(crate) fn zone() -> Zone {
    process::zone(std::env::var_os("TZ").as_deref())
}

/// Whether every recovery is turned off.
pub(crate) fn is_disabled() -> bool {
    std::env::var_os("BACKSTOP_DISABLE").is_some_and(|v| !v.is_empty() && v != "0")
}

/// What an outer Backstop says. What cannot be read is not passed over in silence.
fn from_outer<T>(name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = std::env::var_os(name).filter(|v| !v.is_empty())?.to_string_lossy().into_owned();
    let value = read(&text);
    if value.is_none() {
        terminal::warn(&format!("{name} is set to `{text}`, which is not valid; ignored"), None);
    }
    value
}

/// Variables that look like ours and are not: a mistake in one must not pass unseen. What it is,
/// and what was meant.
pub(crate) fn unknown_variables() -> Vec<(String, String)> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours: Vec<String> = names.filter(|name| name.starts_with("BACKSTOP_")).collect();
    if ours.is_empty() { Vec::new() } else { environment::warnings(&ours) }
}

/// The home folder.
pub(crate) fn home() -> Option<PathBuf> {
    folder_variable("HOME")
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
    let root = state_root(home().as_deref())?;
    let folder = StateFolder::open(&root, Arc::new(now), terminal::redactor()).ok()?;
    Some(folder.with_boot_clock(Arc::new(boot_time)))
}

/// The time, from the one place that reads the clock on the wall.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis.saturating_add(clock_jump()).saturating_add(simulated::offset()))
}

/// The time since the machine was started, sleep included, and which start that was. Nobody can set
/// this clock.
pub(crate) fn boot_time() -> Option<BootTime> {
    let time = backstop_exec::boot_time()?;
    Some(BootTime { millis: time.millis.saturating_add(simulated::offset()), ..time })
}

/// A clock that begins now. It goes on while the machine sleeps, and nobody can set it.
pub(crate) fn running_clock() -> impl Fn() -> Duration + Sync {
    let (began, booted) = (Instant::now(), boot_time());
    move || match (booted, boot_time()) {
        (Some(then), Some(now)) if then.boot == now.boot => {
            Duration::from_millis(u64::try_from(now.millis.saturating_sub(then.millis)).unwrap_or(0))
        }
        _ => began.elapsed(),
    }
}

/// Simulated time, in debug builds and for tests: the file that `BACKSTOP_CLOCK_FILE` names holds
/// how many milliseconds the clocks are ahead. Where nothing runs and a run only waits, the wait is
/// added to it, so that a night passes in a moment; whoever else writes to it lets the machine
/// sleep.
#[cfg(debug_assertions)]
mod simulated {
    use std::path::PathBuf;
    use std::time::Duration;

    fn file() -> Option<PathBuf> {
        std::env::var_os("BACKSTOP_CLOCK_FILE").filter(|file| !file.is_empty()).map(PathBuf::from)
    }

    pub(super) fn offset() -> i64 {
        let read = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse().ok();
        file().and_then(read).unwrap_or(0)
    }

    pub(super) fn pass_time() -> Option<fn(Duration)> {
        file().map(|_| pass as fn(Duration))
    }

    fn pass(time: Duration) {
        let Some(file) = file() else { return };
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let next = file.with_extension("next");
        // Whoever reads it meanwhile finds a whole number.
        if std::fs::write(&next, offset().saturating_add(millis).to_string()).is_ok() {
            let _ = std::fs::rename(next, file);
        }
    }
}

#[cfg(not(debug_assertions))]
mod simulated {
    use std::time::Duration;

    pub(super) fn offset() -> i64 {
        0
    }

    pub(super) fn pass_time() -> Option<fn(Duration)> {
        None
    }
}

/// In debug builds, the clock on the wall can be told to jump after the n-th look at it:
/// `3:-864000000` is ten days back.
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
    getrandom::u64().unwrap_or_else(|_| RandomState::new().build_hasher().finish())
}

/// Whether a program is found on the PATH.
pub(crate) fn is_on_the_path(program: &str) -> bool {
    process::is_found(program, std::env::var_os("PATH").as_deref())
}

/// In debug builds, the process can be told to die at the n-th commit, before or after it: for
/// tests that show that nothing acknowledged is lost.
#[cfg(debug_assertions)]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    // One for the whole process, however many projects are opened in it.
    static HOOK: std::sync::OnceLock<Option<backstop_store::CommitHook>> = std::sync::OnceLock::new();
    let at = || std::env::var("BACKSTOP_CRASH_AT").ok()?.parse().ok();
    HOOK.get_or_init(|| at().map(process::kill_at_commit)).clone()
}

#[cfg(not(debug_assertions))]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    None
}
