//! A run as it is listed: its events folded into one row.

use crate::{Outcome, Reason, RunId, SafeText, Timestamp};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// It goes on, as far as is known.
    Open,
    /// It stopped, and can be resumed.
    Halted,
    /// It ended.
    Ended,
}

impl RunState {
    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            RunState::Open => "open",
            RunState::Halted => "halted",
            RunState::Ended => "ended",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [RunState::Open, RunState::Halted, RunState::Ended].into_iter().find(|state| state.name() == name)
    }
}

impl std::fmt::Display for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A Backstop process, identified by its id and its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot.
    pub start: u64,
}

/// The summary of a run, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// The number of events; also the version that a writer must know.
    pub events: u64,
    /// Whether it goes on.
    pub state: RunState,
    /// The surface that began it: `exec`, `hook`, `run`.
    pub surface: String,
    /// The session of the agent or the person, if known.
    pub session: Option<SafeText>,
    /// Who called, if known.
    pub caller: Option<SafeText>,
    /// The run that started this one.
    pub parent: Option<RunId>,
    /// The Backstop process that wrote it last.
    pub process: ProcessId,
    /// The operation.
    pub operation: Option<SafeText>,
    /// The working directory.
    pub folder: Option<SafeText>,
    /// The name of the profile.
    pub profile: Option<String>,
    /// When the run began.
    pub started_at: Timestamp,
    /// When the run ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// The outcome, if the run has ended.
    pub outcome: Option<Outcome>,
    /// The reason of the last fault, or why the run ended or halted.
    pub reason: Option<Reason>,
    /// How many attempts were made.
    pub attempts: u32,
    /// The exit code that was passed on.
    pub exit: Option<i32>,
    /// The duration of the whole run.
    pub duration_ms: Option<u64>,
    /// The exact command that continues, if there is one.
    pub next: Option<SafeText>,
}
