//! What a command is started with: its words, its environment, its folder and its streams.
//!
//! [`Launch::spawn`] starts it as our own child, with the standard library. On Linux a command that
//! may start others is started below a [reaper](crate::reaper) instead, which makes system calls
//! only: [`Prepared`] has everything that it needs, allocated beforehand.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

#[cfg(target_os = "linux")]
pub(crate) use prepared::Prepared;

/// One standard stream of a command.
#[derive(Debug)]
pub(crate) enum LaunchStream {
    /// The same as ours.
    Ours,
    /// Closed.
    Closed,
    /// This file, pipe or terminal.
    Is(OwnedFd),
}

/// The process group that a command is in when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The same as ours.
    Ours,
    /// A group of its own.
    Own,
    /// A session of its own, controlled by the terminal that is its standard input.
    Session,
}

/// What a command is started with.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// Variables to add to its environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Variables to remove from it.
    pub(crate) env_remove: Vec<OsString>,
    /// Its working directory; `None` for ours.
    pub(crate) folder: Option<PathBuf>,
    /// Its standard streams.
    pub(crate) streams: [LaunchStream; 3],
    /// Its process group.
    pub(crate) group: Group,
    /// The signals that it ignores.
    pub(crate) ignored_signals: Vec<i32>,
}

impl Launch {
    /// Starts it as our child.
    pub(crate) fn spawn(self) -> std::io::Result<Child> {
        let mut command = Command::new(self.argv.first().cloned().unwrap_or_default());
        command.args(self.argv.iter().skip(1));
        self.env_remove.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(self.env);
        if let Some(folder) = self.folder {
            command.current_dir(folder);
        }
        let mut closed = Vec::new();
        let mut stdio = (0..).zip(self.streams).map(|(fd, stream)| match stream {
            LaunchStream::Ours => Stdio::inherit(),
            LaunchStream::Is(file) => Stdio::from(file),
            LaunchStream::Closed => {
                closed.push(fd);
                Stdio::null()
            }
        });
        let mut next = || stdio.next().unwrap_or_else(Stdio::inherit);
        command.stdin(next()).stdout(next()).stderr(next());
        drop(stdio);
        match self.group {
            Group::Ours => {}
            Group::Own => {
                command.process_group(0);
            }
            // SAFETY: between fork and exec only two system calls are made, both safe there;
            // nothing is allocated.
            Group::Session => unsafe {
                command.pre_exec(|| {
                    rustix::process::setsid()?;
                    rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                    Ok(())
                });
            },
        }
        let ignored = self.ignored_signals;
        if !ignored.is_empty() || !closed.is_empty() {
            // Rust restores the default action of SIGPIPE in every command that it starts.
            // SAFETY: between fork and exec only system calls are made, which are safe there;
            // nothing is allocated.
            unsafe {
                command.pre_exec(move || {
                    for signal in &ignored {
                        libc::signal(*signal, libc::SIG_IGN);
                    }
                    for fd in &closed {
                        libc::close(*fd);
                    }
                    Ok(())
                });
            }
        }
        command.spawn()
    }
}

#[cfg(target_os = "linux")]
mod prepared {
    use super::{Group, Launch, LaunchStream};
    use crate::system_call::{self, SignalSet};
    use std::ffi::{CStr, CString, OsStr, OsString};
    use std::io::{Error, ErrorKind};
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::ptr;

    /// Where programs are looked for if the variable PATH is not set.
    const USUAL_PATH: &str = "/bin:/usr/bin";
    /// The lowest descriptor that is no standard stream.
    const FIRST_FREE: RawFd = 3;
    /// The number of the last signal.
    const LAST_SIGNAL: libc::c_int = 64;

    /// Text for the system, and where each piece of it is. The last place is null.
    #[derive(Debug)]
    struct Strings {
        places: Vec<*const libc::c_char>,
        _texts: Vec<CString>,
    }

    impl Strings {
        fn new(texts: Vec<CString>) -> Self {
            // What a `CString` points to stays where it is when the vector moves.
            let places = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
            Self { places, _texts: texts }
        }
    }

    /// What becomes of one standard stream.
    #[derive(Debug)]
    enum Stream {
        Stays,
        Closes,
        /// A copy of this descriptor, which is none of the three.
        Becomes(OwnedFd),
    }

    /// A launch, ready to be carried out by a process that may not allocate.
    #[derive(Debug)]
    pub(crate) struct Prepared {
        /// Where the program may be, in the order in which it is looked for.
        programs: Strings,
        argv: Strings,
        env: Strings,
        folder: Option<CString>,
        streams: [Stream; 3],
        group: Group,
        ignored_signals: Vec<i32>,
    }

    impl Prepared {
        /// Looks nothing up: where the program is is tried when it is started.
        pub(crate) fn new(launch: Launch) -> std::io::Result<Self> {
            let env = environment(launch.env, &launch.env_remove);
            let program = launch.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
            let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
            let mut streams = launch.streams.into_iter().map(|stream| -> std::io::Result<Stream> {
                Ok(match stream {
                    LaunchStream::Ours => Stream::Stays,
                    LaunchStream::Closed => Stream::Closes,
                    // What takes the place of one standard stream must not be another one.
                    LaunchStream::Is(file) if file.as_raw_fd() < FIRST_FREE => {
                        Stream::Becomes(rustix::io::fcntl_dupfd_cloexec(&file, FIRST_FREE)?)
                    }
                    LaunchStream::Is(file) => Stream::Becomes(file),
                })
            });
            let mut next = || streams.next().unwrap_or(Ok(Stream::Stays));
            let streams = [next()?, next()?, next()?];
            Ok(Self {
                programs: Strings::new(places_of(program, path)?),
                argv: Strings::new(launch.argv.into_iter().map(text).collect::<Result<_, _>>()?),
                env: Strings::new(
                    env.into_iter()
                        .map(|(mut name, value)| {
                            name.push("=");
                            name.push(value);
                            text(name)
                        })
                        .collect::<Result<_, _>>()?,
                ),
                folder: launch.folder.map(|folder| text(folder.into_os_string())).transpose()?,
                streams,
                group: launch.group,
                ignored_signals: launch.ignored_signals,
            })
        }

        /// Becomes the command, with these signals blocked. Returns only if that fails, with the
        /// system's error.
        ///
        /// # Safety
        ///
        /// Must be called by a new process that has one thread and descriptors of its own, whose
        /// signals are all blocked, and which may share its memory with another that waits.
        pub(crate) unsafe fn become_command(&self, blocked: SignalSet) -> i32 {
            // SAFETY: only system calls are made, on numbers and on text that lives in `self`.
            unsafe {
                let Some(()) = self.set_up() else { return errno() };
                reset_signals(&self.ignored_signals);
                system_call::set_blocked_signals(blocked);
                let mut refused = false;
                for program in &self.programs.places {
                    if program.is_null() {
                        break;
                    }
                    libc::execve(*program, self.argv.places.as_ptr(), self.env.places.as_ptr());
                    match errno() {
                        // It may be in a folder that comes later, as shells have it.
                        libc::EACCES => refused = true,
                        libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                        other => return other,
                    }
                }
                if refused { libc::EACCES } else { libc::ENOENT }
            }
        }

        /// Its streams, its group or session, and its folder.
        unsafe fn set_up(&self) -> Option<()> {
            let done = |result: libc::c_int| (result != -1).then_some(());
            // SAFETY: as above.
            unsafe {
                for (fd, stream) in (0..).zip(&self.streams) {
                    match stream {
                        Stream::Stays => {}
                        Stream::Closes => {
                            libc::close(fd);
                        }
                        Stream::Becomes(file) => done(libc::dup2(file.as_raw_fd(), fd))?,
                    }
                }
                match self.group {
                    Group::Ours => {}
                    Group::Own => done(libc::setpgid(0, 0))?,
                    Group::Session => {
                        done(libc::setsid())?;
                        done(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
                    }
                }
                match &self.folder {
                    Some(folder) => done(libc::chdir(CStr::as_ptr(folder))),
                    None => Some(()),
                }
            }
        }
    }

    unsafe fn errno() -> i32 {
        // SAFETY: it is the calling thread's.
        unsafe { *libc::__errno_location() }
    }

    /// Signals that we handle get their default action: a handler of ours must not run in the
    /// command. So does SIGPIPE, which Rust's runtime ignores.
    unsafe fn reset_signals(ignored: &[i32]) {
        // SAFETY: the actions are numbers; nothing is allocated.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            for signal in 1..=LAST_SIGNAL {
                let mut action: libc::sigaction = std::mem::zeroed();
                if signal == libc::SIGPIPE
                    || (libc::sigaction(signal, ptr::null(), &raw mut action) == 0
                        && action.sa_sigaction != libc::SIG_DFL
                        && action.sa_sigaction != libc::SIG_IGN)
                {
                    libc::sigaction(signal, &raw const default, ptr::null_mut());
                }
            }
            for signal in ignored {
                libc::signal(*signal, libc::SIG_IGN);
            }
        }
    }

    /// Our environment with these changes, in its order.
    fn environment(add: Vec<(OsString, OsString)>, remove: &[OsString]) -> Vec<(OsString, OsString)> {
        let is_in =
            |list: &[(OsString, OsString)], name: &OsString| list.iter().any(|(other, _)| other == name);
        let is_kept = |name: &OsString| !remove.contains(name) && !is_in(&add, name);
        let mut all: Vec<_> = std::env::vars_os().filter(|(name, _)| is_kept(name)).collect();
        for (at, (name, value)) in add.iter().enumerate() {
            // Of two values, the last one counts.
            if !is_in(&add[at + 1..], name) {
                all.push((name.clone(), value.clone()));
            }
        }
        all
    }

    /// Where a program may be.
    fn places_of(program: &OsStr, path: Option<&OsStr>) -> std::io::Result<Vec<CString>> {
        if program.is_empty() || program.as_bytes().contains(&b'/') {
            return Ok(vec![text(program.to_owned())?]);
        }
        let path = path.unwrap_or(OsStr::new(USUAL_PATH)).as_bytes();
        let in_folder = |folder: &[u8]| {
            let mut place = folder.to_vec();
            // No name at all is the current folder.
            if !folder.is_empty() {
                place.push(b'/');
            }
            place.extend_from_slice(program.as_bytes());
            text(OsString::from_vec(place))
        };
        path.split(|byte| *byte == b':').map(in_folder).collect()
    }

    fn text(from: OsString) -> std::io::Result<CString> {
        let error = |_| Error::new(ErrorKind::InvalidInput, "nul byte found in provided data");
        CString::new(from.into_vec()).map_err(error)
    }
}
