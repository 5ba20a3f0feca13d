//! Starts a command.

use crate::{Input, Spec, terminal};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program does not exist.
    #[error("there is no program `{program}`")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The program exists but may not be executed.
    #[error("`{program}` cannot be run: {error}")]
    NotExecutable {
        /// The program.
        program: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The working directory does not exist.
    #[error("cannot run in {folder}: {error}")]
    Folder {
        /// The working directory.
        folder: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The system could not start it.
    #[error("cannot start `{program}`: {error}")]
    System {
        /// The program.
        program: String,
        /// The system's error.
        error: std::io::Error,
    },
}

impl StartError {
    /// The exit code to report: 127 not found, 126 not executable, 125 otherwise.
    pub fn exit(&self) -> i32 {
        match self {
            StartError::NotFound { .. } => 127,
            StartError::NotExecutable { .. } => 126,
            StartError::Folder { .. } | StartError::System { .. } => 125,
        }
    }
}

/// A started command, with our ends of its streams.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdout: File,
    /// `None` where the command has a pseudo-terminal.
    pub(crate) stderr: Option<File>,
    pub(crate) terminal: Option<terminal::Terminal>,
}

pub(crate) fn start(spec: &Spec, input: &Input) -> Result<Running, StartError> {
    let program = spec.argv.first().cloned().unwrap_or_default();
    let name = program.to_string_lossy().into_owned();
    let system = |error| StartError::System { program: name.clone(), error };
    input.rewind().map_err(system)?;
    let mut command = Command::new(&program);
    command.args(spec.argv.iter().skip(1)).envs(spec.env.iter().map(|(k, v)| (k, v)));
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    let mut terminal = None;
    if spec.pty {
        let opened = terminal::Terminal::open().map_err(system)?;
        opened.attach(&mut command).map_err(system)?;
        terminal = Some(opened);
    } else {
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match input {
            Input::Inherit => Stdio::inherit(),
            Input::Null => Stdio::null(),
            Input::File { file, .. } => Stdio::from(file.try_clone().map_err(system)?),
            Input::Replay(_) => Stdio::piped(),
        });
    }
    let mut child = command.spawn().map_err(|error| refused(spec, &name, error))?;
    drop(command);
    let feed: Option<Box<dyn Write + Send>>;
    let (stdout, stderr) = match &mut terminal {
        Some(terminal) => {
            terminal.started();
            feed = terminal.input().ok().map(|file| Box::new(file) as Box<dyn Write + Send>);
            (terminal.output().map_err(system)?, None)
        }
        None => {
            feed = child.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write + Send>);
            let stdout = child.stdout.take().map(|s| File::from(OwnedFd::from(s)));
            let stderr = child.stderr.take().map(|s| File::from(OwnedFd::from(s)));
            let missing = || system(std::io::Error::other("its output is not connected"));
            (stdout.ok_or_else(missing)?, Some(stderr.ok_or_else(missing)?))
        }
    };
    if let (Input::Replay(replay), Some(feed)) = (input, feed) {
        replay.feed(feed).map_err(system)?;
    }
    Ok(Running { child, stdout, stderr, terminal })
}

fn refused(spec: &Spec, program: &str, error: std::io::Error) -> StartError {
    let program = program.to_owned();
    if let Some(folder) = spec.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return StartError::Folder { folder: folder.display().to_string(), error };
    }
    match error.raw_os_error() {
        Some(libc::ENOENT) => StartError::NotFound { program },
        Some(
            libc::EACCES
            | libc::ENOEXEC
            | libc::EPERM
            | libc::EISDIR
            | libc::ENOTDIR
            | libc::ELOOP
            | libc::ETXTBSY
            | libc::E2BIG,
        ) => StartError::NotExecutable { program, error },
        _ => StartError::System { program, error },
    }
}
