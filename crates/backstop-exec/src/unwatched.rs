//! A command that is run as if we were not there, because we may not open the files that it takes
//! to watch one.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How many files are open at once while a command is watched and recorded, at most.
const FILES: usize = 24;
/// With so many allowed, nobody has to try.
const FILES_ENOUGH: u64 = 256;

/// Whether this process may open as many files as it takes to watch a command.
pub fn may_watch() -> bool {
    if getrlimit(Resource::Nofile).current.is_none_or(|limit| limit >= FILES_ENOUGH) {
        return true;
    }
    let mut held = Vec::with_capacity(FILES);
    while held.len() < FILES {
        match rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0) {
            Ok(file) => held.push(file),
            Err(error) => return error != Errno::MFILE,
        }
    }
    true
}

/// Makes this process the command. Returns only where that fails.
pub fn become_command(argv: &[OsString]) -> std::io::Error {
    match argv.split_first() {
        Some((program, arguments)) => Command::new(program).args(arguments).exec(),
        None => std::io::ErrorKind::InvalidInput.into(),
    }
}
