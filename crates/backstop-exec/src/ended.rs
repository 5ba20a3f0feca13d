//! The result of a supervised command: exit status, what ended it, and its output.

use crate::HeadTail;
use crate::stream_order::{OutputPart, StreamOrder};
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Reason, SafeText, Signal, Surface, Timestamp, signal_name};
use std::time::Duration;

/// What ended the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The command exited by itself.
    Itself,
    /// The command reached its time limit.
    WallClock,
    /// The command wrote nothing for longer than its idle limit.
    Silence,
    /// A [`Stop`](crate::Stop) was requested.
    Stopped,
    /// A key of the terminal (Ctrl-C) was pressed while it ran, and it ended by itself afterwards.
    Interrupted,
}

/// The exit status as the system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// The exit code, if the command exited.
    pub code: Option<i32>,
    /// The signal number, if a signal ended it.
    pub signal: Option<i32>,
}

impl Status {
    /// The exit code that a shell would report: 128 + n for signal n.
    pub fn exit(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 125,
        }
    }

    /// Whether the exit code is 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

/// The result of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status as the system reports it.
    pub status: Status,
    /// What ended the command.
    pub cause: Cause,
    /// Whether whoever read our output had closed it, as in `yes | head -1`.
    pub reader_left: bool,
    /// Why its output could not be passed on, if it could not: the disk of a redirected output is
    /// full. Some of it is lost, whatever the exit status says.
    pub unwritable: Option<String>,
    /// How long the command ran, without the time for which it was paused.
    pub duration: Duration,
    /// How long the command had written nothing when it ended.
    pub silent: Duration,
    /// The beginning and the end of its standard output.
    pub stdout: HeadTail,
    /// The beginning and the end of its standard error.
    pub stderr: HeadTail,
    /// The order in which the two were read.
    pub order: StreamOrder,
    /// Whether standard output and standard error were one stream, which is in `stdout`.
    pub is_one_stream: bool,
    /// Whether all output was read. False where a process left behind held a pipe open for too
    /// long.
    pub drained: bool,
    /// The names of processes that the command left behind and that were ended.
    pub left_behind: Vec<String>,
    /// The names of processes that could not be ended.
    pub unended: Vec<String>,
    /// Whether the command read from our terminal. A retry cannot read the same input again.
    pub read_terminal: bool,
    /// The limit that was reached, for `WallClock` and `Silence`.
    pub limit: Option<Duration>,
}

impl Ended {
    /// Whether the command exited by itself with code 0.
    pub fn is_success(&self) -> bool {
        matches!(self.cause, Cause::Itself | Cause::Interrupted)
            && self.status.is_success()
            && self.unwritable.is_none()
    }

    /// Whether the command ended because nobody read its output any more.
    pub fn ended_by_reader(&self) -> bool {
        const WORDS: [&[u8]; 4] = [b"roken pipe", b"BrokenPipe", b"EPIPE", b"ERR_STREAM_DESTROYED"];
        /// How much of the end of the output is searched for the words.
        const SEARCHED_BYTES: usize = 4 << 10;
        let by_signal =
            self.status.signal == Some(libc::SIGPIPE) || self.status.code == Some(128 + libc::SIGPIPE);
        let says_so = || {
            [&self.stderr, &self.stdout].iter().any(|kept| {
                let end = kept.end(SEARCHED_BYTES);
                WORDS.iter().any(|word| memchr::memmem::find(&end, word).is_some())
            })
        };
        self.reader_left
            && self.cause == Cause::Itself
            && !self.status.is_success()
            && (by_signal || says_so())
    }

    /// What is stored of both streams, in the order in which it was read.
    pub fn output(&self) -> Vec<OutputPart<'_>> {
        self.order.parts([&self.stdout, &self.stderr])
    }

    /// Whether a time limit ended the command.
    pub fn timed_out(&self) -> bool {
        matches!(self.cause, Cause::WallClock | Cause::Silence)
    }

    /// Whether the command's effect is known: lost where a limit, a signal or a stop ended it.
    pub fn dispatch(&self) -> Dispatch {
        if self.cause == Cause::Itself && self.status.code.is_some() {
            Dispatch::Answered
        } else {
            Dispatch::Lost
        }
    }

    /// The exit code to pass on: the command's own, 124 for a time limit, 128 + n for signal n.
    pub fn exit(&self) -> i32 {
        // What could not be written would have ended the command itself; that it was told by
        // SIGPIPE is our doing.
        let lost = self.unwritable.is_some()
            && (self.status.is_success() || self.status.signal == Some(libc::SIGPIPE));
        match self.timed_out() {
            true => 124,
            false if lost => 1,
            false => self.status.exit(),
        }
    }

    /// The name of the signal that ended the command, e.g. `SIGKILL`.
    pub fn signal_name(&self) -> Option<String> {
        self.status.signal.map(|n| signal_name(i64::from(n)))
    }

    /// The signal for the classifier, without the output.
    pub fn signal(&self, command: &str, at: Timestamp) -> Signal {
        Signal {
            surface: Surface::Command,
            dispatch: self.dispatch(),
            command: Some(command.to_owned()),
            exit: self.status.code.map(i64::from).filter(|_| !self.timed_out()),
            signal: self.status.signal.map(i64::from).filter(|_| !self.timed_out()),
            timed_out: self.timed_out(),
            at: Some(at),
            duration: Some(self.duration),
            ..Signal::default()
        }
    }

    /// Classifies the failure; `None` if the command succeeded.
    pub fn fault(&self, classifier: &Classifier, command: &str, at: Timestamp) -> Option<Fault> {
        if self.is_success() {
            return None;
        }
        if let Some(error) = self.unwritable.as_ref().filter(|_| self.cause == Cause::Itself) {
            return Some(unwritable(error));
        }
        let mut signal = self.signal(command, at);
        let by_reader = self.ended_by_reader();
        if by_reader || matches!(self.cause, Cause::Stopped | Cause::Interrupted) {
            // Whatever its exit status is then, the command ended because it was asked to.
            signal.exit = None;
            signal.signal = Some(i64::from(libc::SIGINT));
        }
        let mut session = classifier.session(&signal);
        for (index, kept) in [&self.stdout, &self.stderr].into_iter().enumerate() {
            if index > 0 {
                session.next_stream();
            }
            session.feed(kept.head());
            if kept.left_out_bytes() > 0 {
                session.left_out(kept.left_out_lines());
            }
            let (before, after) = kept.tail();
            session.feed(before);
            session.feed(after);
        }
        let mut fault = session.finish();
        if let Some(fault) = fault.as_mut().filter(|_| by_reader) {
            fault.cause = Some("whoever read its output has closed it".into());
        }
        if let (Some(fault), Some(limit)) = (&mut fault, self.limit.filter(|_| self.timed_out())) {
            let did = if self.cause == Cause::Silence { "silent" } else { "ran" };
            let limit = backstop_core::duration::shown(limit);
            fault.cause = Some(SafeText::new(format!("{did} for {limit}, which is the limit")));
        }
        fault
    }
}

/// The fault of a command whose output could not be passed on.
fn unwritable(error: &str) -> Fault {
    let is_full = ["No space left", "quota", "too large"].iter().any(|words| error.contains(words));
    let mut fault = Fault::new(if is_full { Reason::DiskFull } else { Reason::Unknown });
    fault.cause = Some(SafeText::new(format!("its output could not be written: {error}")));
    fault
}
