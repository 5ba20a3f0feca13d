//! Starts a command.

use crate::output_terminal::OutputTerminal;
use crate::pump::Source;
use crate::{Input, Output, Spec, terminal, watched};
use std::fs::File;
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
    /// `None` where it is closed.
    pub(crate) stdout: Option<Source>,
    /// `None` where it is closed, or one stream with its output.
    pub(crate) stderr: Option<Source>,
    /// The terminal of its own.
    pub(crate) terminal: Option<terminal::Terminal>,
    /// The terminals for output alone.
    pub(crate) windows: Vec<OutputTerminal>,
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
    if spec.ignores_sigpipe {
        ignore_sigpipe(&mut command);
    }
    if spec.ends_with_us {
        end_with_us(&mut command);
    }
    if spec.pty {
        return start_on_terminal(spec, input, command, &name);
    }
    if !spec.shares_group {
        command.process_group(0);
    }
    let mut closed = Vec::new();
    let mut replay = None;
    command.stdin(match input {
        Input::Inherit => Stdio::inherit(),
        Input::Null => Stdio::null(),
        Input::Closed => {
            closed.push(0);
            Stdio::null()
        }
        Input::File { file, .. } | Input::Pipe(file) => Stdio::from(file.try_clone().map_err(system)?),
        Input::Watched(watched) => match watched.begin().map_err(system)? {
            watched::Source::Own(file) => Stdio::from(file),
            watched::Source::Copy(copy) => {
                replay = Some(copy);
                Stdio::piped()
            }
        },
        Input::Replay(given) => {
            replay = Some(given.clone());
            Stdio::piped()
        }
    });
    let mut windows = Vec::new();
    let (stdout, theirs) = connect(&spec.stdout, &mut windows).map_err(system)?;
    if matches!(spec.stdout, Output::Closed) {
        closed.push(1);
    }
    let (stderr, errors) = if spec.joined {
        if matches!(spec.stdout, Output::Closed) {
            closed.push(2);
        }
        (None, theirs.try_clone().map_err(system)?)
    } else {
        if matches!(spec.stderr, Output::Closed) {
            closed.push(2);
        }
        connect(&spec.stderr, &mut windows).map_err(system)?
    };
    command.stdout(Stdio::from(theirs)).stderr(Stdio::from(errors));
    if !closed.is_empty() {
        close_streams(&mut command, closed);
    }
    let mut child = command.spawn().map_err(|error| refused(spec, &name, error))?;
    // Our copies of the command's ends go with it.
    drop(command);
    if let (Some(replay), Some(pipe)) = (replay, child.stdin.take()) {
        replay.feed(Box::new(pipe)).map_err(system)?;
    }
    Ok(Running { child, stdout, stderr, terminal: None, windows })
}

/// Our end and the command's end of one output stream.
fn connect(output: &Output, windows: &mut Vec<OutputTerminal>) -> std::io::Result<(Option<Source>, OwnedFd)> {
    match output {
        Output::Pipe => {
            let (reader, writer) = std::io::pipe()?;
            Ok((Some(Source::File(File::from(OwnedFd::from(reader)))), OwnedFd::from(writer)))
        }
        Output::Terminal(real) => {
            let (window, theirs) = OutputTerminal::open(real)?;
            let reader = window.reader()?;
            windows.push(window);
            Ok((Some(Source::Terminal(reader)), theirs))
        }
        Output::Closed => Ok((None, OwnedFd::from(File::options().write(true).open("/dev/null")?))),
    }
}

/// Starts a command in a session of its own, on a terminal of its own.
fn start_on_terminal(
    spec: &Spec,
    input: &Input,
    mut command: Command,
    name: &str,
) -> Result<Running, StartError> {
    let system = |error| StartError::System { program: name.to_owned(), error };
    let mut terminal = terminal::Terminal::open().map_err(system)?;
    terminal.attach(&mut command).map_err(system)?;
    let child = command.spawn().map_err(|error| refused(spec, name, error))?;
    drop(command);
    terminal.started();
    if let (Input::Replay(replay), Ok(keyboard)) = (input, terminal.input()) {
        replay.feed(Box::new(keyboard)).map_err(system)?;
    }
    let stdout = Some(Source::File(terminal.output().map_err(system)?));
    Ok(Running { child, stdout, stderr: None, terminal: Some(terminal), windows: Vec::new() })
}

/// Leaves SIGPIPE ignored. Rust restores its default action in every command that it starts.
fn ignore_sigpipe(command: &mut Command) {
    // SAFETY: between fork and exec one system call is made, which is safe there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            Ok(())
        });
    }
}

/// Has the command killed when the thread that started it is gone.
fn end_with_us(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        // SAFETY: between fork and exec two system calls are made, which are safe there.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Whoever died before this line will not be noticed.
                if libc::getppid().cast_unsigned() == parent {
                    Ok(())
                } else {
                    Err(std::io::Error::from_raw_os_error(libc::ESRCH))
                }
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Closes these of the command's standard streams.
fn close_streams(command: &mut Command, closed: Vec<i32>) {
    // SAFETY: between fork and exec only close(2) is called, which is safe there; nothing is
    // allocated.
    unsafe {
        command.pre_exec(move || {
            for fd in &closed {
                libc::close(*fd);
            }
            Ok(())
        });
    }
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
