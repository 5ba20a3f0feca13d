//! The execution log: one line for each event, in the autobuild seed's words, for people and for
//! `grep`.

use super::{COMMAND_CHARS_MAX, MESSAGE_CHARS_MAX};
use crate::json::ms;
use crate::run::value_within;
use backstop_core::{Reason, RunId, SafeText, Timestamp};
use std::time::Duration;

/// How many names or pairs a line has.
const VALUES_MAX: usize = 50;

/// An entry of the log. Phases are named by their key, such as `2a`.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEvent {
    /// The run begins.
    Start {
        /// The run.
        run: RunId,
        /// The plan.
        plan: SafeText,
        /// How many phases it has.
        phases: u64,
    },
    /// The settings of the run: names and values.
    Config(Vec<(&'static str, SafeText)>),
    /// An attempt begins.
    PhaseStart {
        /// The phase.
        phase: SafeText,
        /// The attempt, counted from 1.
        attempt: u32,
        /// How many attempts are allowed.
        of: u32,
    },
    /// A phase is complete.
    PhaseComplete {
        /// The phase.
        phase: SafeText,
        /// The attempt that succeeded.
        attempt: u32,
        /// How long it took.
        elapsed: Duration,
    },
    /// An attempt failed.
    PhaseFail {
        /// The phase.
        phase: SafeText,
        /// The attempt.
        attempt: u32,
        /// The reason.
        reason: Reason,
        /// The error message.
        message: SafeText,
    },
    /// A phase is retried.
    Retry {
        /// The phase.
        phase: SafeText,
        /// The number of the next attempt.
        attempt: u32,
        /// How many attempts are allowed.
        of: u32,
        /// The phases that were waited for.
        after: Vec<SafeText>,
    },
    /// A gate has checked an attempt.
    Verify {
        /// The phase.
        phase: SafeText,
        /// The gate.
        gate: SafeText,
        /// Whether it passed.
        passed: bool,
        /// How long it took.
        elapsed: Duration,
    },
    /// A commit was made.
    Commit {
        /// The phase.
        phase: SafeText,
        /// The commit.
        sha: SafeText,
        /// Its subject.
        subject: SafeText,
    },
    /// Work was merged onto the run's tip.
    Integrate {
        /// The phase.
        phase: SafeText,
        /// The new tip.
        tip: SafeText,
    },
    /// Work conflicts with what was merged before.
    Conflict {
        /// The phase.
        phase: SafeText,
        /// The files in conflict.
        files: Vec<SafeText>,
    },
    /// A phase waits for something outside, such as a rate limit.
    Wait {
        /// The phase.
        phase: SafeText,
        /// The reason for the wait.
        reason: Reason,
        /// Until when, if that is known.
        until: Option<Timestamp>,
    },
    /// The run is continued.
    Resume {
        /// The run.
        run: RunId,
        /// How many phases are complete already.
        done: u64,
    },
    /// A person overrode something.
    Override {
        /// Who did it.
        by: SafeText,
        /// What was overridden.
        what: SafeText,
        /// The rationale.
        rationale: SafeText,
    },
    /// The run halts.
    Halt {
        /// The reason.
        reason: Reason,
        /// The reason in one line, for people.
        message: SafeText,
        /// The command that continues it.
        resume: SafeText,
    },
    /// The run is complete.
    Complete {
        /// How many phases are complete.
        phases: u64,
        /// How long it took.
        elapsed: Duration,
    },
}

/// The line of an entry, for example:
/// `2026-11-16T02:00:00.000Z PHASE_FAIL phase=2a attempt=1 type=test_failure message="3 failing"`.
pub fn log_line(at: Timestamp, event: &LogEvent) -> String {
    let line = match event {
        LogEvent::Start { run, plan, phases } => {
            Line::new("START").own("run", run).text("plan", plan).own("phases", phases)
        }
        LogEvent::Config(pairs) => pairs
            .iter()
            .take(VALUES_MAX)
            .fold(Line::new("CONFIG"), |line, (name, text)| line.text(name, text)),
        LogEvent::PhaseStart { phase, attempt, of } => {
            Line::new("PHASE_START").text("phase", phase).own("attempt", attempt).own("of", of)
        }
        LogEvent::PhaseComplete { phase, attempt, elapsed } => Line::new("PHASE_COMPLETE")
            .text("phase", phase)
            .own("attempt", attempt)
            .own("elapsed_ms", ms(*elapsed)),
        LogEvent::PhaseFail { phase, attempt, reason, message } => Line::new("PHASE_FAIL")
            .text("phase", phase)
            .own("attempt", attempt)
            .own("type", reason)
            .text("message", message),
        LogEvent::Retry { phase, attempt, of, after } => {
            Line::new("RETRY").text("phase", phase).own("attempt", attempt).own("of", of).list("after", after)
        }
        LogEvent::Verify { phase, gate, passed, elapsed } => Line::new("VERIFY")
            .text("phase", phase)
            .text("gate", gate)
            .own("passed", passed)
            .own("elapsed_ms", ms(*elapsed)),
        LogEvent::Commit { phase, sha, subject } => {
            Line::new("COMMIT").text("phase", phase).text("sha", sha).text("subject", subject)
        }
        LogEvent::Integrate { phase, tip } => Line::new("INTEGRATE").text("phase", phase).text("tip", tip),
        LogEvent::Conflict { phase, files } => {
            Line::new("CONFLICT").text("phase", phase).list("files", files)
        }
        LogEvent::Wait { phase, reason, until } => {
            let line = Line::new("WAIT").text("phase", phase).own("type", reason);
            until.iter().fold(line, |line, until| line.own("until", until))
        }
        LogEvent::Resume { run, done } => Line::new("RESUME").own("run", run).own("done", done),
        LogEvent::Override { by, what, rationale } => {
            Line::new("OVERRIDE").text("by", by).text("what", what).text("rationale", rationale)
        }
        LogEvent::Halt { reason, message, resume } => {
            Line::new("HALT").own("type", reason).text("message", message).command("resume", resume)
        }
        LogEvent::Complete { phases, elapsed } => {
            Line::new("COMPLETE").own("phases", phases).own("elapsed_ms", ms(*elapsed))
        }
    };
    format!("{at} {}", line.0)
}

/// A line of the log: a word, then `name=value` pairs.
struct Line(String);

impl Line {
    fn new(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// Appends a value of Backstop's own, which has no spaces.
    fn own(self, name: &str, value: impl ToString) -> Self {
        Self(format!("{} {name}={}", self.0, value.to_string()))
    }

    /// Appends a value from outside, quoted where it must be.
    fn text(self, name: &str, text: &SafeText) -> Self {
        Self(format!("{} {name}={}", self.0, value_within(text.raw(), MESSAGE_CHARS_MAX)))
    }

    /// Appends a command, quoted where it must be and never cut.
    fn command(self, name: &str, command: &SafeText) -> Self {
        Self(format!("{} {name}={}", self.0, value_within(command.raw(), COMMAND_CHARS_MAX)))
    }

    /// Appends names as one value, separated by commas.
    fn list(self, name: &str, list: &[SafeText]) -> Self {
        let names: Vec<&str> = list.iter().take(VALUES_MAX).map(SafeText::raw).collect();
        let more = crate::list::more(list.len(), VALUES_MAX);
        self.text(name, &SafeText::new(format!("{}{more}", names.join(","))))
    }
}
