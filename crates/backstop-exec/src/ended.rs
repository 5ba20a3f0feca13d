//! The result of a supervised command: exit status, what ended it, and its output.

use crate::HeadTail;
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, SafeText, Signal, Surface, Timestamp, signal_name};
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
    /// How long the command ran, without the time for which it was paused.
    pub duration: Duration,
    /// How long the command had written nothing when it ended.
    pub silent: Duration,
    /// The beginning and the end of its standard output.
    pub stdout: HeadTail,
    /// The beginning and the end of its standard error.
    pub stderr: HeadTail,
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
        self.cause == Cause::Itself && self.status.is_success()
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
        if self.timed_out() { 124 } else { self.status.exit() }
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
        let mut signal = self.signal(command, at);
        if self.cause == Cause::Stopped {
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
        if let (Some(fault), Some(limit)) = (&mut fault, self.limit.filter(|_| self.timed_out())) {
            let did = if self.cause == Cause::Silence { "silent" } else { "ran" };
            let limit = backstop_core::duration::shown(limit);
            fault.cause = Some(SafeText::new(format!("{did} for {limit}, which is the limit")));
        }
        fault
    }
}
