//! One call of git: its arguments, its environment, and patience with locks.
//!
//! Every git that is run is run from here, by argv. What it prints is bounded; what it should not
//! see of our environment is taken away; hooks run only where the caller says so. It must not know
//! what a command is for.

use super::answer::{GitOutput, has, locked};
use super::child::{self, Bounds, ChildResult};
use super::interrupt::Interrupt;
use super::lasting::LastingAnswers;
use super::{GitError, filters};
use backstop_exec::{Spec, StartError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one git may take. A large checkout on a slow disk is within it.
const TIME_MAX: Duration = Duration::from_secs(600);
/// How long one git may take that runs the user's hooks: some run whole test suites.
const HOOKS_TIME_MAX: Duration = Duration::from_secs(3600);
/// How much of its output is read. The names of a few million files are within it.
const STDOUT_BYTES_MAX: usize = 256 << 20;
/// How much of its errors is kept.
const STDERR_BYTES_MAX: usize = 64 << 10;
/// How often a git is tried that finds a lock, and how long apart.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(250);
/// How long one argument list may be, when many names go into one.
pub(crate) const ARGUMENT_BYTES_MAX: usize = 96 << 10;

/// What would make git work on something else than the folder it is run in, or read names in
/// another way.
const FOREIGN: [&str; 20] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_REFLOG_ACTION",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// Which git is run, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program.
    pub program: PathBuf,
    /// Variables to add to its environment.
    pub env: Vec<(OsString, OsString)>,
    /// How long one git may take.
    pub time: Duration,
    /// How long one git may take that runs the user's hooks.
    pub hooks_time: Duration,
    /// How often a git is tried that finds a lock.
    pub lock_tries: u32,
    /// How long apart.
    pub lock_pause: Duration,
    /// Ends what runs.
    pub interrupt: Interrupt,
    /// Filters that are switched off, because their program is missing. None until it was looked
    /// for them.
    pub missing_filters: Option<Vec<String>>,
    /// What git has answered that cannot change.
    pub lasting: LastingAnswers,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            program: PathBuf::from("git"),
            env: Vec::new(),
            time: TIME_MAX,
            hooks_time: HOOKS_TIME_MAX,
            lock_tries: LOCK_TRIES,
            lock_pause: LOCK_PAUSE,
            interrupt: Interrupt::default(),
            missing_filters: None,
            lasting: LastingAnswers::default(),
        }
    }
}

impl Settings {
    pub(crate) fn call<'a>(&'a self, folder: &'a Path) -> Call<'a> {
        Call {
            settings: self,
            folder,
            config: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            stdin: None,
            hooks: false,
            read: false,
            lasting: false,
        }
    }
}

/// A call of git that is being put together.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    settings: &'a Settings,
    folder: &'a Path,
    config: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
    hooks: bool,
    read: bool,
    lasting: bool,
}

impl Call<'_> {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// A setting for this call alone, as `name=value`.
    pub(crate) fn config(mut self, setting: &str) -> Self {
        self.config.extend(["-c".into(), setting.into()]);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Uses another index.
    pub(crate) fn index(self, file: &Path) -> Self {
        self.env("GIT_INDEX_FILE", file)
    }

    /// Names are names: none of their characters has a meaning.
    pub(crate) fn literal(self) -> Self {
        self.env("GIT_LITERAL_PATHSPECS", "1")
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// The user's hooks run, and may take their time.
    pub(crate) fn with_hooks(mut self) -> Self {
        self.hooks = true;
        self
    }

    /// It only reads: no lock is taken, not even to refresh the index.
    pub(crate) fn read_only(mut self) -> Self {
        self.read = true;
        self
    }

    /// It only reads, and names nothing but objects, by their full names: the answer never changes,
    /// and git is asked once.
    pub(crate) fn lasting(mut self) -> Self {
        self.lasting = true;
        self.read_only()
    }

    /// The lasting answer that is known.
    pub(crate) fn known(&self) -> Option<GitOutput> {
        self.settings.lasting.get(&self.args)
    }

    /// Keeps what git would answer, where that is known without asking.
    pub(crate) fn knows(&self, code: i32, stdout: &str) {
        let (command, folder) = (self.name(), self.folder.to_owned());
        let answer = GitOutput { code, stdout: stdout.into(), stderr: Vec::new(), command, folder };
        self.settings.lasting.keep(&self.args, &answer);
    }

    /// Runs it. Whatever the exit code is, it is an answer.
    pub(crate) fn answer(&self) -> Result<GitOutput, GitError> {
        if !self.lasting {
            return self.new_answer();
        }
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let answer = self.new_answer()?;
        self.settings.lasting.keep(&self.args, &answer);
        Ok(answer)
    }

    fn new_answer(&self) -> Result<GitOutput, GitError> {
        let mut tries = self.settings.lock_tries.max(1);
        loop {
            let answer = self.once()?;
            tries -= 1;
            match locked(&answer) {
                None => return Ok(answer),
                // A lock is not waited for when everything is to end.
                Some(file) if tries == 0 || self.settings.interrupt.refuses_hooks() => {
                    return Err(GitError::Locked { file });
                }
                Some(_) => std::thread::sleep(self.settings.lock_pause),
            }
        }
    }

    /// Runs it. Any exit code but 0 is an error.
    pub(crate) fn done(&self) -> Result<GitOutput, GitError> {
        let answer = self.answer()?;
        if answer.code == 0 { Ok(answer) } else { Err(answer.failed()) }
    }

    fn once(&self) -> Result<GitOutput, GitError> {
        let settings = self.settings;
        let mut argv: Vec<OsString> = vec![settings.program.clone().into()];
        argv.extend(["-c", "gc.auto=0", "-c", "maintenance.auto=false"].map(Into::into));
        if !self.hooks {
            argv.extend(["-c", "core.hooksPath=/dev/null"].map(Into::into));
        }
        for setting in settings.missing_filters.iter().flatten().flat_map(|name| filters::switched_off(name))
        {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(self.config.iter().chain(&self.args).cloned());
        let mut env = settings.env.clone();
        // Words that can be read. Hooks may have to do with more than ASCII.
        env.push(("LC_ALL".into(), if self.hooks { "C.UTF-8" } else { "C" }.into()));
        env.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        if self.read {
            env.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        }
        env.extend(self.env.iter().cloned());
        let env_remove = FOREIGN.iter().chain(&["LANGUAGE"]).map(Into::into).collect();
        let folder = Some(self.folder.to_owned());
        let runs_nothing_else = !self.hooks && runs_nothing_else(&self.args);
        let spec = Spec { argv, folder, env, env_remove, runs_nothing_else, ..Spec::default() };
        let time = if self.hooks { settings.hooks_time } else { settings.time };
        let bounds = Bounds { time, stdout_bytes_max: STDOUT_BYTES_MAX, stderr_bytes_max: STDERR_BYTES_MAX };
        let ended = child::run(spec, self.stdin.clone(), bounds, self.hooks, &settings.interrupt)
            .map_err(|error| self.not_run(&error))?;
        self.read_end(ended, time)
    }

    fn read_end(&self, ended: ChildResult, after: Duration) -> Result<GitOutput, GitError> {
        let (command, folder) = (self.name(), self.folder.to_owned());
        if ended.interrupted {
            return Err(GitError::Interrupted { command, folder });
        }
        if ended.timed_out {
            return Err(GitError::TimedOut { command, folder, after });
        }
        if ended.cut {
            return Err(GitError::TooMuch { command, folder, bytes_max: STDOUT_BYTES_MAX });
        }
        if ended.code != 0 && has(&ended.stderr, "dubious ownership") {
            return Err(GitError::NotTrusted { folder });
        }
        Ok(GitOutput { code: ended.code, stdout: ended.stdout, stderr: ended.stderr, command, folder })
    }

    fn not_run(&self, error: &StartError) -> GitError {
        if let Err(missing) = self.folder.metadata() {
            return GitError::io(self.folder, &missing);
        }
        GitError::NoGit { program: self.settings.program.display().to_string(), why: error.to_string() }
    }

    /// The command as people know it, without the arguments that say on what.
    fn name(&self) -> String {
        let words = self.args.iter().map(|arg| arg.to_string_lossy());
        let plain = |w: &str| w.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !w.starts_with('-');
        let words: Vec<_> = words.take(2).take_while(|word| plain(word)).collect();
        format!("git {}", words.join(" ")).trim_end().to_owned()
    }
}

/// Whether git is known to start no other program for a command, where its hooks are switched off:
/// it reads or writes refs, commits and settings, and neither files nor the index. What looks at
/// files may ask a monitor for changes or pass their content through filters; merges may run
/// drivers, and content that a partial clone lacks is fetched.
fn runs_nothing_else(args: &[OsString]) -> bool {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str()).unwrap_or_default();
    match word(0) {
        "rev-parse" | "symbolic-ref" | "update-ref" | "for-each-ref" | "merge-base" | "rev-list"
        | "config" => true,
        "cat-file" => word(1) == "-e",
        "commit-tree" => word(1) == "--no-gpg-sign",
        "diff-tree" => args.iter().any(|arg| arg == "--raw"),
        _ => false,
    }
}

/// A list of names, each with a NUL at its end.
pub(crate) fn nul_list<P: AsRef<OsStr>>(names: impl IntoIterator<Item = P>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend_from_slice(name.as_ref().as_bytes());
        list.push(0);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_touches_no_file_goes_without_a_reaper() {
        let alone = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(Into::into).collect();
            runs_nothing_else(&args)
        };
        for line in ["rev-parse --verify HEAD", "update-ref --stdin -z", "diff-tree -r -z --raw a b"] {
            assert!(alone(line), "{line}");
        }
        for line in
            ["status", "add -A", "commit -q", "commit-tree x", "diff-tree -p a b", "cat-file --filters x"]
        {
            assert!(!alone(line), "{line}");
        }
    }

    #[test]
    fn a_command_is_named_without_what_it_is_done_to() {
        let settings = Settings::default();
        let call = settings.call(Path::new("/")).args(["worktree", "add", "--detach", "x"]);
        assert_eq!(call.name(), "git worktree add");
        assert_eq!(settings.call(Path::new("/")).args(["add", "-A"]).name(), "git add");
    }
}
