//! The catalogue of events: everything that is ever recorded.

use crate::{Decision, EventId, Fault, Name, Reason, RunId, SafeText, Timestamp};
use serde::{Deserialize, Serialize};

/// The version of the event format.
pub const EVENT_SCHEMA: u32 = 1;

/// One recorded fact of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the format, [`EVENT_SCHEMA`].
    pub schema: u32,
    /// Its id.
    pub id: EventId,
    /// The run it belongs to.
    pub run: RunId,
    /// Its place in the run, counted from 1.
    pub seq: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The session of the agent or the person, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<SafeText>,
    /// The surface that recorded it: `exec`, `hook`, `run`.
    pub surface: String,
    /// Who called, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caller: Option<SafeText>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All was done.
    Done,
    /// It failed.
    Failed,
    /// A part was done.
    Partial,
    /// It was put aside until a condition is gone.
    Deferred,
    /// It may have happened already: a person says whether it is repeated.
    Unconfirmed,
    /// It was stopped from outside.
    Interrupted,
    /// Backstop itself was ended while it ran.
    Lost,
}

impl Outcome {
    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Partial => "partial",
            Outcome::Deferred => "deferred",
            Outcome::Unconfirmed => "unconfirmed",
            Outcome::Interrupted => "interrupted",
            Outcome::Lost => "lost",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Where events of one run are recorded.
pub trait Record: Send + Sync {
    /// Records these, in order, all or none. Once this has returned, they survive the death of the process.
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError>;
}

/// Nothing is recorded: for tests, and for those who keep no journal.
impl Record for () {
    fn record(&self, _: Vec<EventKind>) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Why an event could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot record: {0}")]
pub struct RecordError(pub String);

/// How far something had come when it failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionContext {
    /// What it was doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step: Option<SafeText>,
    /// For how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_seconds: Option<f64>,
    /// What it has so far: a text, or another value as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<SafeText>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// What is run: a command line, a plan's path.
        operation: SafeText,
        /// The folder it runs in.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        folder: Option<SafeText>,
        /// The profile that decides.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        profile: Option<String>,
        /// The run that started this one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent: Option<RunId>,
    },
    /// A plan was read: what is about to be done, and how.
    #[serde(rename = "plan.loaded")]
    PlanLoaded {
        /// What the plan says.
        plan: Box<PlanRecord>,
    },
    /// A run ended by itself.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// How.
        outcome: Outcome,
        /// Why, where it is not done.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<Reason>,
        /// How many attempts were made.
        #[serde(default)]
        attempts: u32,
        /// How long it took in all.
        #[serde(default)]
        duration_ms: u64,
        /// The exit code that was passed on.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit: Option<i32>,
        /// The exact command that continues, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<SafeText>,
    },
    /// A run stopped, resumable.
    #[serde(rename = "run.halted")]
    RunHalted {
        /// Why.
        reason: Reason,
        /// The command that continues.
        resume: String,
    },
    /// A halted run went on.
    #[serde(rename = "run.resumed")]
    RunResumed {},
    /// An attempt began. Durable before the effect.
    #[serde(rename = "attempt.started")]
    AttemptStarted {
        /// The operation.
        operation: SafeText,
        /// Counted from 1.
        attempt: u32,
    },
    /// An attempt ended.
    #[serde(rename = "attempt.finished")]
    AttemptFinished {
        /// The operation.
        operation: SafeText,
        /// Counted from 1.
        attempt: u32,
        /// Whether it succeeded.
        success: bool,
        /// How long it took.
        duration_ms: u64,
        /// The exit code, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit: Option<i64>,
        /// The signal that ended it, by name.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signal: Option<String>,
        /// The end of what it wrote, where it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<SafeText>,
        /// What it handed in, where it was the attempt of a phase.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        delivery: Option<Box<Delivery>>,
    },
    /// An attempt's worker went away; how the attempt ended is not known.
    #[serde(rename = "attempt.lost")]
    AttemptLost {
        /// The operation.
        operation: SafeText,
        /// Counted from 1.
        attempt: u32,
        /// What is known.
        why: SafeText,
    },
    /// A signal was classified. Recorded before anything is done about it.
    #[serde(rename = "error.classified")]
    ErrorClassified {
        /// The operation.
        operation: SafeText,
        /// Counted from 1.
        attempt: u32,
        /// What it is.
        fault: Box<Fault>,
    },
    /// The policy decided.
    #[serde(rename = "decision.made")]
    DecisionMade {
        /// The operation, where the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// After which attempt, counted from 1.
        #[serde(default)]
        attempt: u32,
        /// What to do, and why.
        #[serde(flatten)]
        decision: Decision,
        /// What the fault is called from now on, where it is no longer what it was.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reclassified: Option<Reason>,
    },
    /// A recovery was tried.
    #[serde(rename = "recovery.attempted")]
    RecoveryAttempted {
        /// The operation, where the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// Which.
        strategy: String,
        /// Whether it helped.
        success: bool,
        /// By which attempt, counted from 1.
        #[serde(default)]
        attempt: u32,
    },
    /// A guard learned something.
    #[serde(rename = "guard.updated")]
    GuardUpdated {
        /// Whose guard.
        provider: Name,
        /// Until when it is closed, if it is.
        until: Option<Timestamp>,
    },
    /// Somebody waited for a guard.
    #[serde(rename = "guard.waited")]
    GuardWaited {
        /// Whose guard.
        provider: Name,
        /// How long.
        waited_ms: u64,
    },
    /// Units were taken from a budget.
    #[serde(rename = "budget.consumed")]
    BudgetConsumed {
        /// Which budget.
        budget: Name,
        /// How many.
        units: u64,
        /// How many are left.
        remaining: u64,
    },
    /// Units were given back.
    #[serde(rename = "budget.refunded")]
    BudgetRefunded {
        /// Which budget.
        budget: Name,
        /// How many.
        units: u64,
        /// How many are left.
        remaining: u64,
    },
    /// Nothing is left of a budget.
    #[serde(rename = "budget.exhausted")]
    BudgetExhausted {
        /// Which budget.
        budget: Name,
    },
    /// A breaker opened: nobody tries for a while.
    #[serde(rename = "breaker.opened")]
    BreakerOpened {
        /// Whose breaker.
        provider: Name,
        /// For which operation.
        operation: SafeText,
        /// Failures in a row.
        failures: u32,
    },
    /// A breaker closed: it works again.
    #[serde(rename = "breaker.closed")]
    BreakerClosed {
        /// Whose breaker.
        provider: Name,
        /// For which operation.
        operation: SafeText,
    },
    /// A gate ended.
    #[serde(rename = "gate.finished")]
    GateFinished {
        /// Which gate: `lint`, `format`, `typecheck`, `test`.
        gate: String,
        /// Whether it passed.
        passed: bool,
        /// Of which operation.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// Of which attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
        /// How long it took.
        #[serde(skip_serializing_if = "is_zero", default)]
        duration_ms: u64,
        /// Why, where it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<Reason>,
        /// Tests that failed first and then passed with nothing changed.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        flaky: Vec<SafeText>,
    },
    /// An integration began.
    #[serde(rename = "integration.started")]
    IntegrationStarted {
        /// What is integrated.
        operation: SafeText,
        /// Of which attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
        /// The tip that it goes onto, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        onto: Option<String>,
    },
    /// An integration ended.
    #[serde(rename = "integration.finished")]
    IntegrationFinished {
        /// What was integrated.
        operation: SafeText,
        /// The new tip.
        tip: String,
    },
    /// An integration met a conflict.
    #[serde(rename = "integration.conflicted")]
    IntegrationConflicted {
        /// What was integrated.
        operation: SafeText,
        /// The files in conflict.
        files: Vec<String>,
        /// Of which attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
    },
    /// A commit was made.
    #[serde(rename = "commit.made")]
    CommitMade {
        /// For what.
        operation: SafeText,
        /// Its hash.
        sha: String,
        /// The first line of its message.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        subject: Option<SafeText>,
    },
    /// A state machine entered a state.
    #[serde(rename = "state.entered")]
    StateEntered {
        /// The operation, where the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// Which state.
        state: String,
        /// The error type, where it is the ERROR state.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_type: Option<String>,
        /// How far it had come, where somebody said so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        context: Option<Box<ExecutionContext>>,
    },
    /// A person overrode a decision.
    #[serde(rename = "override")]
    Override {
        /// Who.
        by: SafeText,
        /// What.
        what: SafeText,
        /// Why.
        rationale: SafeText,
    },
    /// A person was told.
    #[serde(rename = "notified")]
    Notified {
        /// Through which sink.
        sink: String,
    },
    /// Work was put aside.
    #[serde(rename = "deferred")]
    Deferred {
        /// The operation.
        operation: SafeText,
        /// What it waits for.
        until: String,
    },
}

/// A plan as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The hash of the table.
    pub table: String,
    /// The phases, in the plan's order.
    pub phases: Vec<PhaseRecord>,
    /// How finished phases are committed.
    pub commit: String,
    /// Where phases run.
    pub isolation: String,
    /// The commit that the run begins from, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The branch that finished work goes to, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branch: Option<String>,
    /// The command that goes on.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub resume: String,
    /// How many attempts a phase has for its own mistakes.
    #[serde(default = "two")]
    pub max_attempts: u32,
    /// Paths that differed from the last commit before anything was done, where phases run in the folder itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<SafeText>,
}

fn two() -> u32 {
    2
}

/// A phase as it was when its plan was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Its id, in the form that is the same however it is written.
    pub id: String,
    /// Its id as the plan writes it.
    pub shown: SafeText,
    /// Its name.
    pub name: SafeText,
    /// The hash of its row and section, without the marks that Backstop sets.
    pub hash: String,
    /// The ids of those it waits for.
    pub depends_on: Vec<String>,
    /// The ids of those that may run at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parallel_with: Vec<String>,
    /// Whether it may be attempted again when nobody knows how far its last attempt got.
    #[serde(skip_serializing_if = "is_true", default = "yes")]
    pub repeatable: bool,
    /// How many tasks it has.
    pub tasks: u32,
}

fn yes() -> bool {
    true
}

/// What is so by default is not written.
fn is_true(value: &bool) -> bool {
    *value
}

/// What the attempt of a phase handed in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The commit that holds its tree, where it was saved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub saved: Option<String>,
    /// The commit that it began from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The numbers of the tasks that were done, counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks_done: Vec<u32>,
    /// How many tasks there are.
    #[serde(default)]
    pub tasks_total: u32,
    /// What its commit is to say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<SafeText>,
    /// How many commits the agent made by itself; they are a part of this.
    #[serde(default)]
    pub own_commits: u32,
    /// Tokens that went in, as the agent says.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tokens_in: u64,
    /// Tokens that came out.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tokens_out: u64,
    /// What that cost, in millionths of a dollar, where the agent says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_millionths: Option<u64>,
    /// The paths that it changed, where they are not in a commit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<SafeText>,
}

/// Numbers that older events do not have are not written where there is nothing to say.
fn is_zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

macro_rules! kind_names {
    ($($variant:ident = $name:literal),* $(,)?) => {
        impl EventKind {
            /// The names of all kinds.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The name as it is written in outputs: `error.classified`.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $name),* }
            }
        }
    };
}

kind_names! {
    RunStarted = "run.started",
    PlanLoaded = "plan.loaded",
    RunEnded = "run.ended",
    RunHalted = "run.halted",
    RunResumed = "run.resumed",
    AttemptStarted = "attempt.started",
    AttemptFinished = "attempt.finished",
    AttemptLost = "attempt.lost",
    ErrorClassified = "error.classified",
    DecisionMade = "decision.made",
    RecoveryAttempted = "recovery.attempted",
    GuardUpdated = "guard.updated",
    GuardWaited = "guard.waited",
    BudgetConsumed = "budget.consumed",
    BudgetRefunded = "budget.refunded",
    BudgetExhausted = "budget.exhausted",
    BreakerOpened = "breaker.opened",
    BreakerClosed = "breaker.closed",
    GateFinished = "gate.finished",
    IntegrationStarted = "integration.started",
    IntegrationFinished = "integration.finished",
    IntegrationConflicted = "integration.conflicted",
    CommitMade = "commit.made",
    StateEntered = "state.entered",
    Override = "override",
    Notified = "notified",
    Deferred = "deferred",
}

impl EventKind {
    /// A run has ended that made no attempt of its own.
    pub fn ended(outcome: Outcome, reason: Option<Reason>) -> Self {
        Self::RunEnded { outcome, reason, attempts: 0, duration_ms: 0, exit: None, next: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_back_with_its_kind() {
        let run: RunId = "r-7f3a".parse().unwrap();
        let event = Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq: 3 },
            run,
            seq: 3,
            at: Timestamp::from_millis(0),
            session: None,
            surface: "exec".into(),
            caller: Some("figma-probe".into()),
            kind: EventKind::ErrorClassified {
                operation: "npm ci".into(),
                attempt: 1,
                fault: Box::new(Fault::new(Reason::RateLimited)),
            },
        };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["kind"], "error.classified");
        assert_eq!(event.kind.name(), "error.classified");
        assert_eq!(json["fault"]["reason"], "rate_limited");
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }
}
