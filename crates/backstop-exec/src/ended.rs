//! How an attempt ended.

use crate::HeadTail;
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, SafeText, Signal, Surface, Timestamp, signal_name};
use std::time::Duration;

/// What ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended by itself.
    Itself,
    /// It ran longer than it may.
    WallClock,
    /// It was silent for longer than it may be.
    Silence,
    /// Somebody asked for it.
    Stopped,
}

/// What the system says about its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// The exit code, where it exited.
    pub code: Option<i32>,
    /// The signal, where one ended it.
    pub signal: Option<i32>,
}

impl Status {
    /// The exit code that a shell would give.
    pub fn exit(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 125,
        }
    }

    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

/// An attempt that is over.
#[derive(Debug)]
pub struct Ended {
    /// What the system says.
    pub status: Status,
    /// What ended it.
    pub cause: Cause,
    /// How long it ran, pauses left out.
    pub duration: Duration,
    /// How long it had been silent in the end.
    pub silent: Duration,
    /// What was kept of its standard output.
    pub stdout: HeadTail,
    /// What was kept of its standard error.
    pub stderr: HeadTail,
    /// Whether all of its output came through. Not where a process that it left held a pipe open for too long.
    pub drained: bool,
    /// The names of processes that it left behind and that were ended.
    pub left_behind: Vec<String>,
    /// The names of processes that could not be ended.
    pub unended: Vec<String>,
    /// Whether it read from our terminal: what was typed is gone.
    pub read_terminal: bool,
    /// The limit that ended it, where the clock did.
    pub limit: Option<Duration>,
}

impl Ended {
    /// Whether it succeeded: it ended by itself, with 0.
    pub fn is_success(&self) -> bool {
        self.cause == Cause::Itself && self.status.is_success()
    }

    /// Whether the clock ended it.
    pub fn timed_out(&self) -> bool {
        matches!(self.cause, Cause::WallClock | Cause::Silence)
    }

    /// How far it got, as far as anybody knows.
    pub fn dispatch(&self) -> Dispatch {
        if self.cause == Cause::Itself && self.status.code.is_some() {
            Dispatch::Answered
        } else {
            Dispatch::Lost
        }
    }

    /// The exit code to pass on: its own, 124 where the clock ended it, 128 + n where a signal did.
    pub fn exit(&self) -> i32 {
        if self.timed_out() { 124 } else { self.status.exit() }
    }

    /// The signal that ended it, by name.
    pub fn signal_name(&self) -> Option<String> {
        self.status.signal.map(|n| signal_name(i64::from(n)))
    }

    /// What was seen, without the text.
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

    /// What it is. Nothing, where it succeeded.
    pub fn fault(&self, classifier: &Classifier, command: &str, at: Timestamp) -> Option<Fault> {
        if self.is_success() {
            return None;
        }
        let mut signal = self.signal(command, at);
        if self.cause == Cause::Stopped {
            // However it ended then: it was we who were asked to stop it.
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
