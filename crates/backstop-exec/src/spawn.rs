//! Starts a command.

use crate::launch::{Group, Launch, LaunchStream};
use crate::mailbox::Mailbox;
use crate::output_terminal::OutputTerminal;
use crate::pump::Source;
use crate::reaper::Reaper;
use crate::{Input, Output, Spec, terminal, watched};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::Child;

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
            Root::Below(reaper) => reaper.root,
        }
    }

    /// The pid of the process whose descendants are the command's processes and no others, once we
    /// are gone.
    pub(crate) fn top(&self) -> u32 {
        match self {
            Root::Child(child) => child.id(),
            Root::Below(reaper) => reaper.pid,
        }
    }

    /// Starts a command: below a reaper, unless it has no orphans.
    #[cfg(target_os = "linux")]
    fn start(spec: &Spec, launch: Launch) -> std::io::Result<Self> {
        if spec.runs_nothing_else {
            return launch.spawn().map(Root::Child);
        }
        let (group, entry) = crate::cgroup::Cgroup::make(&spec.env).unzip();
        let begun = crate::reaper_process::begin(launch, entry, spec.dies_with_us)?;
        let crate::reaper_process::Begun { pid, root, reports, stacks } = begun;
        Ok(Root::Below(Reaper { pid, root, reports, _stacks: stacks, _group: group }))
    }

    /// Starts a command. There are no reapers here.
    #[cfg(not(target_os = "linux"))]
    fn start(_: &Spec, launch: Launch) -> std::io::Result<Self> {
        launch.spawn().map(Root::Child)
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
    let name = spec.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let system = |error| StartError::System { program: name.clone(), error };
    input.rewind().map_err(system)?;
    if spec.pty {
        return start_on_terminal(spec, input, to, &name);
    }
    let (mut replay, mut ours) = (None, None);
    let mut piped = || {
        let (reader, writer) = std::io::pipe()?;
        ours = Some(writer);
        Ok(LaunchStream::Is(OwnedFd::from(reader)))
    };
    let stdin = match input {
        Input::Inherit => LaunchStream::Ours,
        Input::Null => LaunchStream::Is(File::open("/dev/null").map_err(system)?.into()),
        Input::Closed => LaunchStream::Closed,
        Input::File { file, .. } | Input::Pipe(file) => {
            LaunchStream::Is(file.try_clone().map_err(system)?.into())
        }
        Input::Watched(watched) => match watched.begin().map_err(system)? {
            watched::Source::Own(file) => LaunchStream::Is(file.into()),
            watched::Source::Copy(copy) => {
                replay = Some(copy);
                piped().map_err(system)?
            }
        },
        Input::Replay(given) => {
            replay = Some(given.clone());
            piped().map_err(system)?
        }
    };
    let mut windows = Vec::new();
    let mut for_caller = None;
    let (stdout, theirs) = match &spec.stdout {
        Output::Caller => {
            let (reader, writer) = std::io::pipe().map_err(system)?;
            for_caller = Some(OwnedFd::from(reader));
            (None, LaunchStream::Is(OwnedFd::from(writer)))
        }
        output => connect(output, &mut windows).map_err(system)?,
    };
    let (stderr, errors) = if spec.joined {
        let same = match &theirs {
            LaunchStream::Is(file) => LaunchStream::Is(file.try_clone().map_err(system)?),
            LaunchStream::Ours | LaunchStream::Closed => LaunchStream::Closed,
        };
        (None, same)
    } else {
        connect(&spec.stderr, &mut windows).map_err(system)?
    };
    let group = if spec.shares_group { Group::Ours } else { Group::Own };
    let launch = launch(spec, [stdin, theirs, errors], group);
    // Our copies of the command's ends go with it.
    let root = Root::start(spec, launch).map_err(|error| refused(spec, &name, error))?;
    if let (Some(replay), Some(pipe)) = (replay, ours) {
        replay.feed(Box::new(pipe)).map_err(system)?;
    }
    Ok(Running { root, stdout, for_caller, stderr, terminal: None, windows })
}

/// What a command is started with.
fn launch(spec: &Spec, streams: [LaunchStream; 3], group: Group) -> Launch {
    Launch {
        argv: spec.argv.clone(),
        env: spec.env.clone(),
        env_remove: spec.env_remove.clone(),
        folder: spec.folder.clone(),
        streams,
        group,
        ignored_signals: spec.ignored_signals.clone(),
    }
}

/// Our end and the command's end of one output stream.
fn connect(
    output: &Output,
    windows: &mut Vec<OutputTerminal>,
) -> std::io::Result<(Option<Source>, LaunchStream)> {
    match output {
        Output::Pipe | Output::Caller => {
            let (reader, writer) = std::io::pipe()?;
            let reader = Source::File(File::from(OwnedFd::from(reader)));
            Ok((Some(reader), LaunchStream::Is(OwnedFd::from(writer))))
        }
        Output::Terminal(real) => {
            let (window, theirs) = OutputTerminal::open(real)?;
            let reader = window.reader()?;
            windows.push(window);
            Ok((Some(Source::Terminal(reader)), LaunchStream::Is(theirs)))
        }
        Output::Own(real) => Ok((None, LaunchStream::Is(real.try_clone()?))),
        Output::Closed => Ok((None, LaunchStream::Closed)),
    }
}

/// Starts a command in a session of its own, on a terminal of its own.
fn start_on_terminal(spec: &Spec, input: &Input, to: &Mailbox, name: &str) -> Result<Running, StartError> {
    let system = |error| StartError::System { program: name.to_owned(), error };
    let mut terminal = terminal::Terminal::open().map_err(system)?;
    let streams = terminal.streams().map_err(system)?.map(LaunchStream::Is);
    let root = Root::start(spec, launch(spec, streams, Group::Session))
        .map_err(|error| refused(spec, name, error))?;
    terminal.started();
    if let (Input::Replay(replay), Ok(keyboard)) = (input, terminal.input(to)) {
        replay.feed(Box::new(keyboard)).map_err(system)?;
    }
    let stdout = Some(Source::File(terminal.output().map_err(system)?));
    let windows = Vec::new();
    Ok(Running { root, stdout, for_caller: None, stderr: None, terminal: Some(terminal), windows })
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
