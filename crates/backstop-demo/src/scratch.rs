//! The demo's folder below the temporary folder: a project, and a state folder, a home and settings
//! apart from the user's. It stays when the demo has ended, so that the run can be looked at; only
//! the newest few are kept.
//!
//! ```text
//! backstop-demo-1a2b3c/
//!   backstop     a script: Backstop in this project, with this state
//!   in-use       locked while the demo runs
//!   project/  state/  home/
//! ```

use crate::DemoError;
use backstop_core::{SafeText, shell};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many folders of demos are kept, the new one included.
const FOLDERS_MAX: usize = 3;
/// How often a name is drawn that nobody has.
const NAMES_MAX: usize = 8;
/// How much of what git says is shown.
const GIT_ERROR_CHARS_MAX: usize = 400;

const PREFIX: &str = "backstop-demo-";
const LOCK: &str = "in-use";

/// What the process gives to a demo.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The folder for temporary files.
    pub temp_dir: PathBuf,
    /// Our own program.
    pub program: PathBuf,
    /// The names of the variables that git reads.
    pub git_variables: Vec<OsString>,
    /// A random number that nobody else has.
    pub random: fn() -> u64,
}

/// The demo's folder.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    git_variables: Vec<OsString>,
    /// What a person types for `backstop` here.
    program: Vec<String>,
    /// Held until the demo ends: nobody else removes the folder meanwhile.
    _lock: File,
}

impl Scratch {
    /// Makes a new folder, and removes old ones.
    pub fn make(around: &Surroundings) -> Result<Self, DemoError> {
        let parent = &around.temp_dir;
        let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.clone());
        let root = new_folder(&parent, around.random)?;
        let at = |error| DemoError::Write { file: root.clone(), error };
        let lock = File::create(root.join(LOCK)).map_err(at)?;
        lock.lock().map_err(at)?;
        remove_old(&parent);
        for name in ["project", "state", "home"] {
            fs::create_dir(root.join(name)).map_err(at)?;
        }
        let script = root.join("backstop");
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&script)
            .and_then(|mut file| {
                std::io::Write::write_all(&mut file, own_script(&root, &around.program).as_bytes())
            })
            .map_err(at)?;
        let script = script.display().to_string();
        let program = if may_execute(&root) { vec![script] } else { vec!["sh".to_owned(), script] };
        Ok(Self { root, program, git_variables: around.git_variables.clone(), _lock: lock })
    }

    /// The folder of all of it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The project, where commands run.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, content: &str) -> Result<(), DemoError> {
        let file = self.project().join(name);
        fs::write(&file, content).map_err(|error| DemoError::Write { file, error })
    }

    /// Makes the project a git repository with one commit. Who commits, and that nobody signs and
    /// no hook runs, stands in the repository's own settings: whatever the user has set up for git
    /// has no say here.
    pub fn make_repository(&self) -> Result<(), DemoError> {
        self.git(&["-c", "init.defaultBranch=main", "init", "--quiet", "--template="])?;
        for (key, value) in [
            ("user.name", "Backstop demo"),
            ("user.email", "demo@example.invalid"),
            ("commit.gpgSign", "false"),
            ("core.hooksPath", "/dev/null"),
            ("core.autocrlf", "false"),
        ] {
            self.git(&["config", key, value])?;
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "-m", "A project, and a plan for it"]).map(drop)
    }

    /// What git prints.
    pub fn git(&self, words: &[&str]) -> Result<String, DemoError> {
        let mut git = Command::new("git");
        git.args(words).current_dir(self.project()).env("HOME", self.root.join("home")).stdin(Stdio::null());
        git.env_remove("XDG_CONFIG_HOME");
        for name in &self.git_variables {
            git.env_remove(name);
        }
        let output = git.output().map_err(|error| DemoError::CannotRun { program: "git", error })?;
        if !output.status.success() {
            let message = SafeText::new(String::from_utf8_lossy(&output.stderr)).line(GIT_ERROR_CHARS_MAX);
            let error = std::io::Error::other(format!("git {}: {message}", words.join(" ")));
            return Err(DemoError::Write { file: self.project(), error });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Backstop in this project, with this state.
    pub fn backstop(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(words).stdin(Stdio::null());
        command
    }

    /// The line that a person types for the same, from any folder.
    pub fn typed(&self, words: &[&str]) -> String {
        shell::line(self.program.iter().map(String::as_str).chain(words.iter().copied()))
    }

    /// Removes the folder: nothing in it is worth a second look.
    pub fn remove(self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A folder that nobody else has, and nobody else may enter.
fn new_folder(parent: &Path, random: fn() -> u64) -> Result<PathBuf, DemoError> {
    let mut tries = 0;
    loop {
        let path = parent.join(format!("{PREFIX}{:06x}", random() & 0xff_ffff));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < NAMES_MAX => {
                tries += 1;
            }
            Err(error) => return Err(DemoError::Write { file: path, error }),
        }
    }
}

/// The folders of demos, newest first. What is not ours, or what others may enter, is none.
fn folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let us = rustix::process::geteuid().as_raw();
    let mut folders: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| Some((fs::symlink_metadata(entry.path()).ok()?, entry.path())))
        .filter(|(what, _)| what.is_dir() && what.uid() == us)
        .filter_map(|(what, path)| Some((what.modified().ok()?, path)))
        .collect();
    folders.sort_by(|a, b| b.cmp(a));
    folders.into_iter().map(|(_, path)| path).collect()
}

/// The state folders of the demos that are kept, newest first: a demo prints the ids of its runs,
/// and people type them.
pub fn demo_states(temp_dir: &Path) -> Vec<PathBuf> {
    let is_private =
        |folder: &PathBuf| fs::symlink_metadata(folder).is_ok_and(|what| what.mode() & 0o077 == 0);
    let kept = folders(temp_dir).into_iter().filter(is_private).take(FOLDERS_MAX);
    kept.map(|folder| folder.join("state")).filter(|state| state.is_dir()).collect()
}

/// Removes all folders of earlier demos but the newest. What is not ours, or in use, stays.
fn remove_old(parent: &Path) {
    for path in folders(parent).into_iter().skip(FOLDERS_MAX) {
        let unused = File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if unused {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// A script that is Backstop in the demo's project with the demo's state. What the demo runs is
/// what it tells people to type; neither the PATH nor any variable or setting of theirs has a say.
fn own_script(root: &Path, own: &Path) -> String {
    let word = |path: &Path| shell::quoted(&path.display().to_string());
    format!(
        "#!/bin/sh\n\
         # Backstop as `backstop demo` runs it: in the demo's project, with its state, without your settings.\n\
         for name in $(env | sed -n -e 's/^\\(BACKSTOP_[A-Z0-9_]*\\)=.*/\\1/p' -e 's/^\\(GIT_[A-Z0-9_]*\\)=.*/\\1/p'); do\n  \
           unset \"$name\"\n\
         done\n\
         unset XDG_CONFIG_HOME\n\
         root={root}\n\
         export HOME=\"$root/home\" BACKSTOP_STATE_DIR=\"$root/state\"\n\
         cd \"$root/project\" && exec {own} \"$@\"\n",
        root = word(root),
        own = word(own),
    )
}

/// Whether a script may be run there: a temporary folder may be mounted without.
fn may_execute(folder: &Path) -> bool {
    rustix::fs::statvfs(folder)
        .is_ok_and(|there| !there.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC))
}
