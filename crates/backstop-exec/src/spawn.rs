//! Starts a command.

use crate::mailbox::Mailbox;
use crate::output_terminal::OutputTerminal;
use crate::pump::Source;
use crate::reaper::{Reaper, Reports};
use crate::{Input, Output, Spec, terminal, watched};
use std::ffi::OsString;
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

/// The command's first process: a child of ours, or of its reaper.
#[derive(Debug)]
pub(crate) enum Root {
    /// Our child, which starts no other program or has no reaper on this system.
    Child(Child),
    /// The child of a reaper.
    Below(Reaper),
}

impl Root {
    /// The pid of the command.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Root::Child(child) => child.id(),
            Root::Below(reaper) => reaper.root(),
        }
    }

    /// The pid of the process whose descendants are the command's processes and no others, once we
    /// are gone.
    pub(crate) fn top(&self) -> u32 {
        match self {
            Root::Child(child) => child.id(),
            Root::Below(reaper) => reaper.pid(),
        }
    }

    /// Starts the command.
    fn start(command: &mut Command, reports: Option<Reports>) -> std::io::Result<Self> {
        let child = command.spawn()?;
        #[cfg(target_os = "linux")]
        if let Some(reports) = reports {
            return Reaper::greet(child, reports).map(Root::Below);
        }
        drop(reports);
        Ok(Root::Child(child))
    }
}

/// A started command, with our ends of its streams.
pub(crate) struct Running {
    pub(crate) root: Root,
    /// `None` where it is closed, or read by the caller.
    pub(crate) stdout: Option<Source>,
    /// Our end of its output, where the caller reads it.
    pub(crate) for_caller: Option<OwnedFd>,
    /// `None` where it is closed, or one stream with its output.
    pub(crate) stderr: Option<Source>,
    /// The terminal of its own.
    pub(crate) terminal: Option<terminal::Terminal>,
    /// The terminals for output alone.
    pub(crate) windows: Vec<OutputTerminal>,
}

/// Starts the command. A script without a line that names its interpreter is given to `sh`, as
/// shells, `env` and `timeout` do.
pub(crate) fn start(spec: &Spec, input: &Input, to: &Mailbox) -> Result<Running, StartError> {
    let started = start_as(spec, input, to);
    match &started {
        Err(StartError::NotExecutable { error, .. }) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            // The shell finds it on the PATH, too.
            let shell = ["/bin/sh", "-c", r#"exec "$0" "$@""#].map(OsString::from);
            let argv = shell.into_iter().chain(spec.argv.iter().cloned()).collect();
            start_as(&Spec { argv, ..spec.clone() }, input, to)
        }
        _ => started,
    }
}

fn start_as(spec: &Spec, input: &Input, to: &Mailbox) -> Result<Running, StartError> {
    let program = spec.argv.first().cloned().unwrap_or_default();
    let name = program.to_string_lossy().into_owned();
    let system = |error| StartError::System { program: name.clone(), error };
    input.rewind().map_err(system)?;
    let mut command = Command::new(&program);
    command.args(spec.argv.iter().skip(1));
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command.envs(spec.env.iter().map(|(k, v)| (k, v)));
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    let reports = reports(spec, &mut command).map_err(system)?;
    if !spec.ignored_signals.is_empty() {
        ignore_signals(&mut command, spec.ignored_signals.clone());
    }
    if spec.pty {
        return start_on_terminal(spec, input, command, reports, to, &name);
    }
    if !spec.shares_group && reports.is_none() {
        command.process_group(0);
    }
    let mut closed = Vec::new();
    let (mut replay, mut ours) = (None, None);
    let mut piped = || {
        let (reader, writer) = std::io::pipe()?;
        ours = Some(writer);
        Ok(Stdio::from(reader))
    };
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
                piped().map_err(system)?
            }
        },
        Input::Replay(given) => {
            replay = Some(given.clone());
            piped().map_err(system)?
        }
    });
    let mut windows = Vec::new();
    let mut for_caller = None;
    let (stdout, theirs) = match &spec.stdout {
        Output::Caller => {
            let (reader, writer) = std::io::pipe().map_err(system)?;
            for_caller = Some(OwnedFd::from(reader));
            (None, OwnedFd::from(writer))
        }
        output => connect(output, &mut windows).map_err(system)?,
    };
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
    let root = Root::start(&mut command, reports).map_err(|error| refused(spec, &name, error))?;
    // Our copies of the command's ends go with it.
    drop(command);
    if let (Some(replay), Some(pipe)) = (replay, ours) {
        replay.feed(Box::new(pipe)).map_err(system)?;
    }
    Ok(Running { root, stdout, for_caller, stderr, terminal: None, windows })
}

/// Puts a reaper above the command, unless it has no orphans, and gives what the reaper reports.
#[cfg(target_os = "linux")]
fn reports(spec: &Spec, command: &mut Command) -> std::io::Result<Option<Reports>> {
    if spec.runs_nothing_else {
        return Ok(None);
    }
    let (group, entry) = crate::cgroup::Cgroup::make(&spec.env).unzip();
    let own_group = !spec.shares_group && !spec.pty;
    let reports = crate::reaper::put_below(command, own_group, spec.dies_with_us, entry)?;
    Ok(Some(Reports { reports, group }))
}

/// There are no reapers here.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)]
fn reports(_: &Spec, _: &mut Command) -> std::io::Result<Option<Reports>> {
    Ok(None)
}

/// Our end and the command's end of one output stream.
fn connect(output: &Output, windows: &mut Vec<OutputTerminal>) -> std::io::Result<(Option<Source>, OwnedFd)> {
    match output {
        Output::Pipe | Output::Caller => {
            let (reader, writer) = std::io::pipe()?;
            Ok((Some(Source::File(File::from(OwnedFd::from(reader)))), OwnedFd::from(writer)))
        }
        Output::Terminal(real) => {
            let (window, theirs) = OutputTerminal::open(real)?;
            let reader = window.reader()?;
            windows.push(window);
            Ok((Some(Source::Terminal(reader)), theirs))
        }
        Output::Own(real) => Ok((None, real.try_clone()?)),
        Output::Closed => Ok((None, OwnedFd::from(File::options().write(true).open("/dev/null")?))),
    }
}

/// Starts a command in a session of its own, on a terminal of its own.
fn start_on_terminal(
    spec: &Spec,
    input: &Input,
    mut command: Command,
    reports: Option<Reports>,
    to: &Mailbox,
    name: &str,
) -> Result<Running, StartError> {
    let system = |error| StartError::System { program: name.to_owned(), error };
    let mut terminal = terminal::Terminal::open().map_err(system)?;
    terminal.attach(&mut command).map_err(system)?;
    let root = Root::start(&mut command, reports).map_err(|error| refused(spec, name, error))?;
    drop(command);
    terminal.started();
    if let (Input::Replay(replay), Ok(keyboard)) = (input, terminal.input(to)) {
        replay.feed(Box::new(keyboard)).map_err(system)?;
    }
    let stdout = Some(Source::File(terminal.output().map_err(system)?));
    let windows = Vec::new();
    Ok(Running { root, stdout, for_caller: None, stderr: None, terminal: Some(terminal), windows })
}

/// Leaves signals ignored. Rust restores the default action of SIGPIPE in every command that it
/// starts.
fn ignore_signals(command: &mut Command, ignored: Vec<i32>) {
    // SAFETY: between fork and exec only system calls are made, which are safe there; nothing is
    // allocated.
    unsafe {
        command.pre_exec(move || {
            for signal in &ignored {
                libc::signal(*signal, libc::SIG_IGN);
            }
            Ok(())
        });
    }
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
