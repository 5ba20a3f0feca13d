//! The execution log: one line an event, in the words of the autobuild seed's family, to be read by people and by `grep`.

use super::{COMMAND_CHARS_MAX, MESSAGE_CHARS_MAX};
use crate::json::ms;
use crate::run::value_within;
use backstop_core::{Reason, RunId, SafeText, Timestamp};
use std::time::Duration;

/// How many names or pairs a line has.
const VALUES_MAX: usize = 50;

/// Something that is logged. Phases are named by their key, such as `2a`.
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
    /// What it runs with: names and values.
    Config(Vec<(&'static str, SafeText)>),
    /// Phases that may run side by side.
    Batch {
        /// Their number among the batches, counted from 1.
        batch: u64,
        /// The phases.
        phases: Vec<SafeText>,
    },
    /// An attempt begins.
    PhaseStart {
        /// The phase.
        phase: SafeText,
        /// The attempt, counted from 1.
        attempt: u32,
        /// How many there may be.
        of: u32,
    },
    /// A phase is complete.
    PhaseComplete {
        /// The phase.
        phase: SafeText,
        /// The attempt that did it.
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
        /// Why.
        reason: Reason,
        /// What was said.
        message: SafeText,
    },
    /// A phase is tried again.
    Retry {
        /// The phase.
        phase: SafeText,
        /// The attempt that follows.
        attempt: u32,
        /// How many there may be.
        of: u32,
        /// The phases that were waited for.
        after: Vec<SafeText>,
    },
    /// A gate has looked at an attempt.
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
    /// Work does not go together.
    Conflict {
        /// The phase.
        phase: SafeText,
        /// The files.
        files: Vec<SafeText>,
    },
    /// A phase waits for the world.
    Wait {
        /// The phase.
        phase: SafeText,
        /// What is in the way.
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
        /// Who.
        by: SafeText,
        /// What.
        what: SafeText,
        /// Why.
        rationale: SafeText,
    },
    /// The run halts.
    Halt {
        /// Why.
        reason: Reason,
        /// Why, in a line.
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

/// `2026-11-16T02:00:00.000Z PHASE_FAIL phase=2a attempt=1 type=test_failure message="3 tests failing"`.
pub fn log_line(at: Timestamp, event: &LogEvent) -> String {
    let line = match event {
        LogEvent::Start { run, plan, phases } => {
            Line::new("START").own("run", run).text("plan", plan).own("phases", phases)
        }
        LogEvent::Config(pairs) => pairs
            .iter()
            .take(VALUES_MAX)
            .fold(Line::new("CONFIG"), |line, (name, text)| line.text(name, text)),
        LogEvent::Batch { batch, phases } => Line::new("BATCH").own("batch", batch).list("phases", phases),
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

/// A word, and pairs after it.
struct Line(String);

impl Line {
    fn new(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// A value that is ours and holds no space.
    fn own(self, name: &str, value: impl ToString) -> Self {
        Self(format!("{} {name}={}", self.0, value.to_string()))
    }

    /// A value from outside: quoted where it must be.
    fn text(self, name: &str, text: &SafeText) -> Self {
        Self(format!("{} {name}={}", self.0, value_within(text.raw(), MESSAGE_CHARS_MAX)))
    }

    /// A command: quoted likewise, and whole.
    fn command(self, name: &str, command: &SafeText) -> Self {
        Self(format!("{} {name}={}", self.0, value_within(command.raw(), COMMAND_CHARS_MAX)))
    }

    /// Names with commas between, as one value.
    fn list(self, name: &str, list: &[SafeText]) -> Self {
        let names: Vec<&str> = list.iter().take(VALUES_MAX).map(SafeText::raw).collect();
        let more = crate::list::more(list.len(), VALUES_MAX);
        self.text(name, &SafeText::new(format!("{}{more}", names.join(","))))
    }
}
