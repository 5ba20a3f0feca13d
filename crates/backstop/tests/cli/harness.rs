//! A fluent way to run the binary.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// One run of the binary.
pub(crate) struct Run {
    args: Vec<String>,
    stdin: Vec<u8>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
    program: Option<String>,
}

impl Run {
    pub(crate) fn new(args: &[&str]) -> Self {
        Self {
            args: args.iter().map(ToString::to_string).collect(),
            stdin: Vec::new(),
            env: Vec::new(),
            folder: None,
            program: None,
        }
    }

    /// Another program instead, with the same arguments and surroundings.
    pub(crate) fn program(mut self, name: &str) -> Self {
        self.program = Some(name.to_owned());
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<Path>) -> Self {
        self.args.push(arg.as_ref().display().to_string());
        self
    }

    pub(crate) fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = text.as_ref().to_vec();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In this folder.
    pub(crate) fn dir(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The command, for tests that watch it while it runs.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_backstop")));
        // What the tests themselves are told is not for the program.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BACKSTOP_"))
        {
            command.env_remove(name);
        }
        command
            .args(&self.args)
            .env_remove("CI")
            .env("BACKSTOP_STATE_DIR", state_folder())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        with_default_signals(command)
    }

    pub(crate) fn go(self) -> Done {
        let mut command = self.command();
        if self.stdin.is_empty() {
            // A pipe that is closed while the command runs might have held something.
            let output = command.stdin(Stdio::null()).output().unwrap();
            return Done { args: self.args, output };
        }
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.stdin;
        // On a thread of its own: a child that answers while it reads must not wait for us.
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Done { args: self.args, output }
    }
}

/// The signals that tests send, and whoever starts the tests may ignore: a shell makes its
/// background jobs ignore the keys of the terminal, `nohup` makes them ignore SIGHUP.
const SENT: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGCHLD,
];

/// The command with default actions for these signals. What a process ignores its children
/// ignore, too: tests that run as a background job of a shell would send SIGINT in vain.
pub(crate) fn with_default_signals(mut command: Command) -> Command {
    static IS_IGNORED: OnceLock<bool> = OnceLock::new();
    let is_ignored = |signal: &libc::c_int| {
        // SAFETY: the struct is made of numbers, and nothing is changed.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(*signal, std::ptr::null(), &raw mut action);
            action.sa_sigaction == libc::SIG_IGN
        }
    };
    if *IS_IGNORED.get_or_init(|| SENT.iter().any(is_ignored)) {
        // SAFETY: `signal` may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                for signal in SENT {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
    }
    command
}

/// A state folder that all tests of this process share, unless they name their own.
fn state_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// What a run left behind.
pub(crate) struct Done {
    args: Vec<String>,
    output: Output,
}

impl Done {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("standard output is UTF-8")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).expect("standard error is UTF-8")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.output.stdout
    }

    /// Checks the exit code, and that nothing panicked.
    pub(crate) fn code(self, want: i32) -> Self {
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        assert!(!stderr.contains("panicked at"), "{:?}\n{stderr}", self.args);
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        assert_eq!(self.output.status.code(), Some(want), "{:?}\n{stdout:.2000}{stderr}", self.args);
        self
    }

    /// The exit code, whatever it is.
    pub(crate) fn exit(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout()).unwrap_or_else(|e| panic!("{e}: {}", self.stdout()))
    }

    pub(crate) fn lines(&self) -> Vec<serde_json::Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// One that lies in no repository: the target folder does.
    pub(crate) fn outside(name: &str) -> Self {
        Self::below(quick_folder(), &format!("backstop-{name}"))
    }

    fn below(parent: &Path, name: &str) -> Self {
        // Two tests may have thought of the same name.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{name}-{number}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// How much room a folder in memory must have: no test needs a tenth of it.
const QUICK_BYTES_MIN: u64 = 1 << 30;

/// Where projects of tests are: in memory, where there is room that may run programs, else in the
/// temporary folder. Git and SQLite wait for the disk hundreds of times in a test, and no test is
/// about what a power cut leaves.
fn quick_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| in_memory().unwrap_or_else(|| std::env::temp_dir().canonicalize().unwrap()))
}

fn in_memory() -> Option<PathBuf> {
    let memory = Path::new("/dev/shm");
    let there = rustix::fs::statvfs(memory).ok()?;
    let may_execute = !there.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
    if !may_execute || there.f_bavail.saturating_mul(there.f_frsize) < QUICK_BYTES_MIN {
        return None;
    }
    let all = memory.join(format!("backstop-tests-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&all).ok()?;
    // Two processes must not tidy up and begin at the same time.
    let tidying = std::fs::File::create(all.join("lock")).ok()?;
    tidying.lock().ok()?;
    remove_what_was_left(&all);
    let folder =
        (0..).map(|n| all.join(format!("{}-{n}", std::process::id()))).find(|path| !path.exists())?;
    std::fs::create_dir(&folder).ok()?;
    let lock = std::fs::File::create(folder.join("lock")).ok()?;
    lock.lock().ok()?;
    static LOCK: OnceLock<std::fs::File> = OnceLock::new();
    let _ = LOCK.set(lock);
    Some(folder)
}

/// What tests left that were killed: nobody holds the lock of their folder. Numbers of processes
/// say nothing here, containers that share this memory have their own.
fn remove_what_was_left(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_held = std::fs::File::open(path.join("lock")).is_ok_and(|lock| lock.try_lock().is_err());
        if path.is_dir() && !is_held {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A project's file that sets nothing that needs trust.
const HARMLESS: &str = "[log]\nformat = \"human\"\n";
/// What tests do not wait for.
const SHORT_WAITS: &str = "[profile.command]\nbase = \"20ms\"\n[exec]\ngrace = \"500ms\"\n";

/// A project with a state folder of its own, in which waits are short.
pub(crate) struct Project {
    folder: Folder,
}

impl Project {
    pub(crate) fn new(name: &str) -> Self {
        let this = Self::below(Folder::outside(name));
        std::fs::create_dir_all(this.path().join(".git")).unwrap();
        this.file("backstop.toml", HARMLESS);
        this.settings(SHORT_WAITS);
        this
    }

    fn below(folder: Folder) -> Self {
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        Self { folder }
    }

    /// A project outside git.
    pub(crate) fn plain(name: &str) -> Self {
        let this = Self::below(Folder::outside(name));
        this.file("backstop.toml", HARMLESS);
        this.settings("[exec]\ngrace = \"500ms\"\n");
        this
    }

    /// A project in a real repository with one commit.
    pub(crate) fn git(name: &str) -> Self {
        let this = Self::plain(name);
        this.sh("git init -q -b main && git add -A && git commit -q -m base");
        this
    }

    /// Runs a line of shell here, as somebody with a name, and gives what it prints.
    pub(crate) fn sh(&self, line: &str) -> String {
        let output = self.program("sh", &["-c", line]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The project's folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// A file beside the project, outside of its tree.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The state folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Settings in the user's own file, which need no trust. Waits stay short where they say
    /// nothing of them.
    pub(crate) fn settings(&self, text: impl AsRef<[u8]>) {
        let folder = self.beside("home/.config/backstop");
        std::fs::create_dir_all(&folder).unwrap();
        let mut text = String::from_utf8(text.as_ref().to_vec()).unwrap();
        if !text.contains("[exec]") && !text.contains("[profile.command") {
            text.push_str(SHORT_WAITS);
        }
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// A `backstop.toml` that is trusted as it is.
    pub(crate) fn trusted_file(&self, text: impl AsRef<[u8]>) {
        self.file("backstop.toml", text);
        self.run(&["trust"]).go().code(0);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Any command, here.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::new(args)
            .dir(&self.path())
            .env("BACKSTOP_STATE_DIR", &self.state().display().to_string())
            .env("HOME", &self.folder.path().join("home").display().to_string())
            .env("XDG_CONFIG_HOME", &self.folder.path().join("home/.config").display().to_string())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.invalid")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.invalid")
    }

    /// `backstop exec FLAGS -- sh -c SCRIPT`.
    pub(crate) fn exec(&self, flags: &[&str], script: &str) -> Run {
        let mut args = vec!["exec"];
        args.extend(flags);
        args.extend(["--", "sh", "-c", script]);
        self.run(&args)
    }

    /// Another program, here, that may start Backstop itself.
    pub(crate) fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(args).current_dir(self.path()).env("BACKSTOP_STATE_DIR", self.state());
        command.env("XDG_CONFIG_HOME", self.beside("home/.config"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.invalid");
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        with_default_signals(command)
    }

    /// All events of this project, as JSON.
    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        self.run(&["events", "--json"]).go().code(0).lines()
    }

    /// The kinds of all events.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|e| e["kind"].as_str().unwrap().to_owned()).collect()
    }
}

/// Waits until something holds: for what another process does. Gives up after a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let from = std::time::Instant::now();
    while !holds() {
        assert!(from.elapsed() < std::time::Duration::from_secs(60), "{what}: it did not happen in a minute");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Whether a process is there and not a zombie.
#[cfg(target_os = "linux")]
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A plan as it was before any run set its marks.
pub(crate) fn pristine(plan: &str) -> String {
    let unmarked = |line: &str| {
        let line = line.replacen("- [x]", "- [ ]", 1);
        if line.starts_with('|') {
            line.replace(['✅', '❌', '🔄', '⏭'], "⬜").replace('\u{fe0f}', "")
        } else {
            line
        }
    };
    plan.split_inclusive('\n').map(unmarked).collect()
}

/// A Markdown text without its code spans and blocks, whose fences are runs of backticks of one
/// length.
pub(crate) fn outside_code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let run = rest[at..].chars().take_while(|c| *c == '`').count();
        let inner = &rest[at + run..];
        let mut from = 0;
        let close = loop {
            let Some(next) = inner[from..].find('`').map(|next| from + next) else { break None };
            let length = inner[next..].chars().take_while(|c| *c == '`').count();
            if length == run {
                break Some(next);
            }
            from = next + length;
        };
        let Some(close) = close else { panic!("a code span is open: {text}") };
        rest = &inner[close + run..];
    }
    out + rest
}

/// A schema of the documentation.
pub(crate) fn schema(name: &str) -> serde_json::Value {
    let file = root().join(format!("docs/schemas/{name}.schema.json"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Runs a script that may mount, in a room of its own: as root there, or else as who we are.
/// `unshare` makes the command.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn in_a_room(script: &str, unshare: impl Fn() -> Command) -> Output {
    let mut said = String::new();
    for flag in ["-Urm", "-m"] {
        let output = unshare().args([flag, "sh", "-c", script]).env_remove("CI").output().unwrap();
        if output.status.success() {
            return output;
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("{said}");
}
