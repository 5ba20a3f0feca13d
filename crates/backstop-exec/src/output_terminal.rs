//! A pseudo-terminal for output alone: the command sees a terminal on its output, while its input
//! and its controlling terminal are the real ones.
//!
//! So Ctrl-C, Ctrl-Z, raw mode and `/dev/tty` work as they do without us, and our own terminal is
//! in no mode of ours if we are killed. What the command writes is post-processed by the
//! pseudo-terminal (`\n` becomes `\r\n`) and would be again by the real one; so it is undone here,
//! and what is stored is what the command wrote. Programs that set their modes on the output
//! (everything made with curses) have them set on the real terminal too: the kernel reports each
//! change in packet mode, as long as EXTPROC is set.
//!
//! Some programs read keys from the terminal that they write to, opened again by its name (`less`)
//! or as a copy of standard error (`vim -`). They are recognised by their open descriptors when
//! they change the terminal's mode, and keys are passed on to them ([`Keys`]) until they change it
//! back.

use crate::tree;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Termios};
use std::fs::File;
use std::io::{ErrorKind, PipeWriter, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A terminal whose input is processed elsewhere. It has no effect on output.
const EXTPROC: LocalModes = LocalModes::from_bits_retain(libc::EXTPROC as _);
/// The bit in a packet's first byte that reports a change of settings.
const TIOCPKT_IOCTL: u8 = 64;
/// Programs that read keys from their standard error. Nothing else tells them from those that only
/// write there. They wait for keys at standard input (util-linux up to 2.38 does), which is the
/// real terminal, and read them from standard error, which is not.
const READS_ERRORS: [&str; 1] = ["more"];
/// How long such a program is given to see that a key is there, before it is taken from where it
/// looks.
const SEES_KEY: Duration = Duration::from_millis(200);
/// How long the `\n` of a `\r\n` that was cut in two is waited for.
const CUT_IN_TWO: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Our side of a pseudo-terminal for output.
#[derive(Debug)]
pub(crate) struct OutputTerminal {
    ours: Arc<File>,
    real: Arc<OwnedFd>,
}

impl OutputTerminal {
    /// Opens one with the settings and the size of `real`, and gives the command's side of it.
    pub(crate) fn open(real: &Arc<OwnedFd>) -> std::io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = crate::terminal::open_pair()?;
        let mut settings = rustix::termios::tcgetattr(&**real)?;
        if !is_plain(settings.output_modes) {
            // What cannot be undone is left to the real terminal.
            settings.output_modes.remove(OutputModes::OPOST);
        }
        settings.local_modes |= EXTPROC;
        rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &settings)?;
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open, and the argument is a pointer to a number.
        if unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCPKT, &raw const on) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let terminal = Self { ours: Arc::new(File::from(ours)), real: Arc::clone(real) };
        terminal.resize();
        Ok((terminal, theirs))
    }

    /// Gives it the size of the real one.
    pub(crate) fn resize(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(&*self.real) {
            let _ = rustix::termios::tcsetwinsize(&*self.ours, size);
        }
    }

    /// What the command writes.
    pub(crate) fn reader(&self) -> std::io::Result<OutputReader> {
        let settings = rustix::termios::tcgetattr(&*self.ours)?;
        Ok(OutputReader {
            ours: Arc::clone(&self.ours),
            real: Arc::clone(&self.real),
            settings,
            held_cr: false,
            keys: None,
        })
    }
}

/// Whether `\n` to `\r\n` is all that happens to output.
fn is_plain(modes: OutputModes) -> bool {
    let others = OutputModes::OCRNL | OutputModes::ONOCR | OutputModes::ONLRET | OutputModes::TABDLY;
    #[cfg(target_os = "linux")]
    let others = others | OutputModes::OLCUC;
    !modes.contains(OutputModes::OPOST) || !modes.intersects(others)
}

/// Reads what the command writes, as it wrote it.
#[derive(Debug)]
pub(crate) struct OutputReader {
    ours: Arc<File>,
    real: Arc<OwnedFd>,
    /// The settings of the command's side when it was last looked at.
    settings: Termios,
    /// Whether a `\r` was held back that may belong to a `\n`.
    held_cr: bool,
    /// Passes keys on, while a program reads them from this terminal.
    keys: Option<Keys>,
}

impl AsFd for OutputReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

impl OutputReader {
    /// Reads into `buffer` and gives the range that holds output. Empty at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<Range<usize>> {
        loop {
            let undone = self.undoes();
            let read = match (&*self.ours).read(buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
                // The command's side is closed.
                Err(_) => 0,
            };
            if read == 0 || buffer[0] & TIOCPKT_IOCTL != 0 {
                self.follow();
            }
            if read <= 1 {
                if read == 0 {
                    if std::mem::take(&mut self.held_cr) {
                        buffer[0] = b'\r';
                        return Ok(0..1);
                    }
                    return Ok(0..0);
                }
                continue;
            }
            let mut from = 1;
            if std::mem::take(&mut self.held_cr) {
                buffer[0] = b'\r';
                from = 0;
            }
            let mut to = read;
            if undone && self.undoes() {
                to = from + undo_newlines(&mut buffer[from..read]);
                if buffer[to - 1] == b'\r' && self.has_more() {
                    self.held_cr = true;
                    to -= 1;
                }
            }
            if from < to {
                return Ok(from..to);
            }
        }
    }

    /// Whether `\r\n` stands for `\n`.
    fn undoes(&self) -> bool {
        self.settings.output_modes.contains(OutputModes::OPOST | OutputModes::ONLCR)
    }

    fn has_more(&self) -> bool {
        let mut polled = [PollFd::new(&*self.ours, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&CUT_IN_TWO)).is_ok_and(|ready| ready > 0)
    }

    /// Changes on the real terminal what the command has changed on its own.
    pub(crate) fn follow(&mut self) {
        let Ok(mut now) = rustix::termios::tcgetattr(&*self.ours) else { return };
        if !now.local_modes.contains(EXTPROC) {
            // Without it there would be no report of the next change.
            now.local_modes |= EXTPROC;
            let _ = rustix::termios::tcsetattr(&*self.ours, OptionalActions::Now, &now);
        }
        let before = std::mem::replace(&mut self.settings, now.clone());
        if let Ok(mut real) = rustix::termios::tcgetattr(&*self.real)
            && apply_changes(&mut real, &before, &now)
            && self.may_change_real()
        {
            crate::terminal::without(libc::SIGTTOU, || {
                let _ = rustix::termios::tcsetattr(&*self.real, OptionalActions::Now, &real);
            });
        }
        if self.settings.local_modes.contains(LocalModes::ICANON) {
            self.keys = None;
        } else if self.keys.is_none()
            && let Some(reader) = self.reader_of_keys()
        {
            self.keys = Keys::start(&self.ours, reader).ok();
        }
    }

    /// The program of the command that reads keys from this terminal: it has it open as its
    /// standard input, or has opened it itself.
    fn reader_of_keys(&self) -> Option<KeyReader> {
        let name = rustix::pty::ptsname(&*self.ours, Vec::new()).ok()?;
        let name = PathBuf::from(String::from_utf8_lossy(name.as_bytes()).into_owned());
        let exe = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let ours = exe("self");
        let mut pids = tree::children(std::process::id());
        let mut at = 0;
        while at < pids.len() {
            pids.extend(tree::children(pids[at]));
            at += 1;
        }
        pids.iter().find_map(|number| {
            let pid = number.to_string();
            // One of us inside has it open to write to it, and reads the real one.
            if exe(&pid) == ours {
                None
            } else if has_open(&pid, &name, &["1", "2"]) {
                Some(KeyReader::Anywhere)
            } else {
                let reads_errors = has_open(&pid, &name, &["1"])
                    && tree::Stat::read(*number).is_some_and(|stat| READS_ERRORS.contains(&&*stat.name));
                reads_errors.then_some(KeyReader::FromErrors(*number))
            }
        })
    }

    /// Whether the real terminal is the command's to change: it is in the foreground, or the
    /// terminal is not the one that controls us.
    fn may_change_real(&self) -> bool {
        match rustix::termios::tcgetpgrp(self.real.as_fd()) {
            Ok(group) => {
                let leader = group.as_raw_nonzero().get().unsigned_abs();
                Some(group) == tree::own_group() || tree::is_below(leader, std::process::id())
            }
            Err(_) => true,
        }
    }
}

/// Whether a process has a terminal open by another descriptor than these.
fn has_open(pid: &str, name: &Path, but: &[&str]) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| {
        let is_output = entry.file_name().to_str().is_some_and(|fd| but.contains(&fd));
        !is_output && std::fs::read_link(entry.path()).is_ok_and(|file| file == name)
    })
}

/// Who reads keys from the terminal for output.
#[derive(Debug)]
enum KeyReader {
    /// A program that also waits for them there.
    Anywhere,
    /// This process, one of [`READS_ERRORS`].
    FromErrors(u32),
}

impl KeyReader {
    /// Waits until a key that is there may be taken from the real terminal.
    fn wait_to_take(&self) {
        let Self::FromErrors(pid) = self else { return };
        let from = Instant::now();
        while from.elapsed() < SEES_KEY {
            let call = std::fs::read_to_string(format!("/proc/{pid}/syscall"));
            let number = call.as_deref().ok().and_then(|call| call.split(' ').next()?.parse().ok());
            if number == Some(libc::SYS_read) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Passes what is typed at the real terminal on to a pseudo-terminal, until it is dropped.
#[derive(Debug)]
struct Keys {
    _stop: PipeWriter,
}

impl Keys {
    fn start(to: &Arc<File>, reader: KeyReader) -> std::io::Result<Self> {
        let mut from = File::open("/dev/tty")?;
        let mut to = to.try_clone()?;
        let (stopped, stop) = std::io::pipe()?;
        let run = move || {
            // Where the terminal is not ours to read, reading is an error and does not stop us.
            crate::terminal::without(libc::SIGTTIN, || {
                let mut buffer = [0; 1024];
                loop {
                    let mut polled =
                        [PollFd::new(&from, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
                    let ready = rustix::event::poll(&mut polled, None).is_ok();
                    if !polled[1].revents().is_empty() {
                        return;
                    }
                    if !ready || polled[0].revents().is_empty() {
                        continue;
                    }
                    reader.wait_to_take();
                    match from.read(&mut buffer) {
                        Ok(read @ 1..) if to.write_all(&buffer[..read]).is_ok() => {}
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        _ => return,
                    }
                }
            });
        };
        std::thread::Builder::new().name("keys".to_owned()).stack_size(128 << 10).spawn(run)?;
        Ok(Self { _stop: stop })
    }
}

/// Applies the difference between two settings to a third. Returns whether there is any.
fn apply_changes(to: &mut Termios, before: &Termios, now: &Termios) -> bool {
    macro_rules! follow {
        ($field:ident) => {{
            let changed = before.$field ^ now.$field;
            to.$field = (to.$field - changed) | (now.$field & changed);
            !changed.is_empty()
        }};
    }
    let mut changed = follow!(input_modes) | follow!(output_modes) | follow!(control_modes);
    let locals = (before.local_modes ^ now.local_modes) - EXTPROC;
    to.local_modes = (to.local_modes - locals) | (now.local_modes & locals);
    changed |= !locals.is_empty();
    for index in SPECIAL_CODES {
        if before.special_codes[index] != now.special_codes[index] {
            to.special_codes[index] = now.special_codes[index];
            changed = true;
        }
    }
    changed
}

use rustix::termios::SpecialCodeIndex as Code;

/// The characters and counts that a terminal knows.
const SPECIAL_CODES: [Code; 16] = [
    Code::VINTR,
    Code::VQUIT,
    Code::VERASE,
    Code::VKILL,
    Code::VEOF,
    Code::VTIME,
    Code::VMIN,
    Code::VSTART,
    Code::VSTOP,
    Code::VSUSP,
    Code::VEOL,
    Code::VREPRINT,
    Code::VDISCARD,
    Code::VWERASE,
    Code::VLNEXT,
    Code::VEOL2,
];

/// Turns each `\r\n` into `\n`, in place. Returns the new length.
fn undo_newlines(bytes: &mut [u8]) -> usize {
    let Some(first) = memchr::memchr(b'\r', bytes) else { return bytes.len() };
    let mut to = first;
    let mut at = first;
    while at < bytes.len() {
        // `at` is at a `\r`.
        let next = at + 1;
        if bytes.get(next) != Some(&b'\n') {
            bytes[to] = b'\r';
            to += 1;
        }
        let end = memchr::memchr(b'\r', &bytes[next..]).map_or(bytes.len(), |found| next + found);
        bytes.copy_within(next..end, to);
        to += end - next;
        at = end;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_added_return_goes() {
        for (given, want) in
            [("a\r\nb\r\n", "a\nb\n"), ("50%\r", "50%\r"), ("\r\r\n", "\r\n"), ("plain", "plain"), ("", "")]
        {
            let mut bytes = given.as_bytes().to_vec();
            let length = undo_newlines(&mut bytes);
            assert_eq!(&bytes[..length], want.as_bytes(), "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_comes_back(written in "[a\r\n]{0,40}") {
            let mut shown = written.replace('\n', "\r\n").into_bytes();
            let length = undo_newlines(&mut shown);
            prop_assert_eq!(&shown[..length], written.as_bytes());
        }
    }
}
