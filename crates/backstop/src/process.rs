//! The one place that reads the environment, the clock and random numbers, and opens projects.

use crate::error::{CliError, failed};
use crate::terminal::{self, Terminal};
use backstop_config::{Given, LogFormat, Surroundings, environment};
use backstop_core::{BootTime, RunId, SafeText, Timestamp, Zone};
use backstop_runtime::{Place, Process, Project, ProjectError, process, project};
use backstop_store::{ProcessId, StateFolder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The project around the current folder, under these flags. Problems in its config files are a
/// warning: a typing mistake must not stop every command.
pub(crate) fn open(flags: &[Given], log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let project = open_quietly(flags, log_format)?;
    terminal::warn_problems(&project.config);
    Ok(project)
}

/// Opens the project for a run that nobody watches: refused where a config file or variable has
/// problems, because limits, gates and notifications that were asked for would be missing for hours.
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
    project.process.parent = from_outer("BACKSTOP_RUN_ID", |id| id.parse::<RunId>().ok());
    project.process.deadline = from_outer("BACKSTOP_DEADLINE", Timestamp::parse_rfc3339);
    Ok(project)
}

/// The folder of the project that we are in, where nothing of its configuration is needed.
pub(crate) fn root() -> Result<PathBuf, CliError> {
    Ok(project::root_of(&place(surroundings()?)))
}

fn place(surroundings: Surroundings<'static>) -> Place<'static> {
    let state_root = state_root(surroundings.home.as_deref());
    Place { surroundings, state_root, variables: variables() }
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
    let cwd = std::env::current_dir().map_err(|error| {
        failed(format!("cannot find the current folder: {error}")).hint("change into a folder that exists")
    })?;
    Ok(surroundings_of(cwd))
}

fn surroundings_of(cwd: PathBuf) -> Surroundings<'static> {
    Surroundings {
        cwd,
        home: home(),
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
        zone,
        random,
        id: id(),
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

/// The largest file that is read as the description of a time zone.
const ZONE_FILE_BYTES_MAX: u64 = 64 << 10;

/// The local time zone: what `TZ` says, else what `/etc/localtime` is; UTC where neither can be read.
pub(crate) fn zone() -> Zone {
    let read = |path: &str| {
        let mut data = Vec::new();
        std::fs::File::open(path).ok()?.take(ZONE_FILE_BYTES_MAX).read_to_end(&mut data).ok()?;
        Zone::from_file("local", &data)
    };
    let Some(value) = std::env::var_os("TZ") else { return read("/etc/localtime").unwrap_or_default() };
    let value = value.to_string_lossy();
    let name = value.strip_prefix(':').unwrap_or(&value);
    if name.starts_with('/') { read(name) } else { Zone::from_variable(name) }.unwrap_or_default()
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
    let names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("BACKSTOP_"))
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    let warning = |(name, near): (String, Option<String>)| {
        let hint = near.map_or_else(
            || "`backstop config env` lists them all".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        (format!("{name} is not a variable of Backstop; ignored"), hint)
    };
    environment::strangers(names.iter().map(String::as_str)).into_iter().map(warning).collect()
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
    Timestamp::from_millis(millis.saturating_add(clock_jump()))
}

/// The time since the machine was started, sleep included, and which start that was. Nobody can set
/// this clock.
pub(crate) fn boot_time() -> Option<BootTime> {
    static BOOT: OnceLock<Option<i64>> = OnceLock::new();
    let boot = (*BOOT.get_or_init(boot_number))?;
    // On macOS this clock runs on while the machine sleeps.
    #[cfg(target_os = "linux")]
    let clock = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let millis = time.tv_sec.checked_mul(1000)?.checked_add(time.tv_nsec / 1_000_000)?;
    (read == 0).then_some(BootTime { boot, millis })
}

/// How many digits of a boot's id are kept: what fits into a number.
const BOOT_DIGITS: usize = 15;

/// A number for this start of the machine.
fn boot_number() -> Option<i64> {
    let id = boot_id()?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(BOOT_DIGITS).collect();
    i64::from_str_radix(&digits, 16).ok()
}

#[cfg(target_os = "linux")]
fn boot_id() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(target_os = "macos")]
fn boot_id() -> Option<String> {
    let mut id = [0u8; 64];
    let mut len = id.len();
    let name = c"kern.bootsessionuuid";
    // SAFETY: `id` has room for `len` bytes, and the name ends with a NUL.
    let read = unsafe {
        libc::sysctlbyname(name.as_ptr(), id.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0)
    };
    let text = id.get(..len).filter(|_| read == 0)?;
    std::str::from_utf8(text).ok().map(|text| text.trim_end_matches('\0').to_owned())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn boot_id() -> Option<String> {
    None
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
    RandomState::new().build_hasher().finish()
}

/// This process, as the store knows it.
pub(crate) fn id() -> ProcessId {
    process::current()
}

/// Whether a process that wrote a run is still there.
pub(crate) fn is_alive(process: &ProcessId) -> bool {
    process::is_alive(process)
}

/// Whether a program is found on the PATH.
pub(crate) fn is_on_the_path(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return runs(Path::new(program));
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| runs(&folder.join(program))))
}

/// In debug builds, the process can be told to die at the n-th commit, before or after it: for
/// tests that show that nothing acknowledged is lost.
#[cfg(debug_assertions)]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    // One for the whole process, however many projects are opened in it.
    static HOOK: OnceLock<Option<backstop_store::CommitHook>> = OnceLock::new();
    let make = || -> Option<backstop_store::CommitHook> {
        let at: u64 = std::env::var("BACKSTOP_CRASH_AT").ok()?.parse().ok()?;
        let seen = AtomicU64::new(0);
        Some(Arc::new(move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) + 1 == at {
                // As hard as it gets: nothing is flushed, nobody is told.
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                loop {
                    std::thread::park();
                }
            }
        }))
    };
    HOOK.get_or_init(make).clone()
}

#[cfg(not(debug_assertions))]
fn crash_hook() -> Option<backstop_store::CommitHook> {
    None
}
