//! The event catalogue: every kind of event that is recorded in a journal.

use crate::{Decision, EventId, Fault, Name, Reason, RunId, SafeText, Timestamp, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the event format.
pub const EVENT_SCHEMA: u32 = 1;

/// One recorded fact of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the format, [`EVENT_SCHEMA`].
    pub schema: u32,
    /// The id of the event.
    pub id: EventId,
    /// The run it belongs to.
    pub run: RunId,
    /// The position in the run, counted from 1.
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
    /// The kind of event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was done.
    Done,
    /// It failed.
    Failed,
    /// A part was done.
    Partial,
    /// The operation was deferred until a condition is gone.
    Deferred,
    /// The operation may have taken effect already: a person decides whether to repeat it.
    Unconfirmed,
    /// It was stopped by a person or a signal.
    Interrupted,
    /// The Backstop process was gone before the run ended.
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
    /// Records these events in order, all or none. Once this returns, they survive the death of the
    /// process.
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError>;
}

/// Records nothing: for tests, and for callers without a journal.
impl Record for () {
    fn record(&self, _: Vec<EventKind>) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Why an event could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot record: {0}")]
pub struct RecordError(pub String);

/// The progress of a task at the time of its failure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionContext {
    /// The step that it was doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step: Option<SafeText>,
    /// How long it had run, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_seconds: Option<f64>,
    /// Its result so far: a text, or another value as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<SafeText>,
    /// What the task can do instead, as it says itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<SafeText>,
    /// The stack trace, its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_trace: Option<SafeText>,
    /// Everything else that was reported, by name: a text, or another value as JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, SafeText>,
    /// How many of those fields were too many to keep.
    #[serde(skip_serializing_if = "is_zero")]
    pub fields_omitted: u32,
}

/// The kind of an event, with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The operation: a command line, or the path of a plan.
        operation: SafeText,
        /// The working directory.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        folder: Option<SafeText>,
        /// The name of the profile.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        profile: Option<String>,
        /// The run that started this one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent: Option<RunId>,
    },
    /// A plan was read, before anything in it is started.
    #[serde(rename = "plan.loaded")]
    PlanLoaded {
        /// The plan.
        plan: Box<PlanRecord>,
    },
    /// A run ended by itself.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// The outcome.
        outcome: Outcome,
        /// The reason of the fault that ended it, unless it is done.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<Reason>,
        /// How many attempts were made.
        #[serde(default)]
        attempts: u32,
        /// The duration of the whole run.
        #[serde(default)]
        duration_ms: u64,
        /// The exit code that was passed on.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit: Option<i32>,
        /// The exact command that continues, if there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<SafeText>,
    },
    /// A run was halted, and can be resumed.
    #[serde(rename = "run.halted")]
    RunHalted {
        /// The reason of the fault that halted it.
        reason: Reason,
        /// The command that continues.
        resume: String,
    },
    /// A halted run was resumed.
    #[serde(rename = "run.resumed")]
    RunResumed {},
    /// An attempt began. Durable before the attempt has any effect.
    #[serde(rename = "attempt.started")]
    AttemptStarted {
        /// The operation.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        attempt: u32,
    },
    /// An attempt ended.
    #[serde(rename = "attempt.finished")]
    AttemptFinished {
        /// The operation.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// Whether it succeeded.
        success: bool,
        /// The duration of the attempt.
        duration_ms: u64,
        /// The exit code, if there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit: Option<i64>,
        /// The signal that ended it, by name.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signal: Option<String>,
        /// The end of the output of a failed attempt.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<SafeText>,
        /// The work that the attempt of a phase delivered.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        delivery: Option<Box<Delivery>>,
    },
    /// The worker of an attempt is gone; how the attempt ended is unknown.
    #[serde(rename = "attempt.lost")]
    AttemptLost {
        /// The operation.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// What is known about it.
        why: SafeText,
        /// What it left, where that was saved.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        delivery: Option<Box<Delivery>>,
    },
    /// An agent named its session. A later attempt may continue it.
    #[serde(rename = "session.started")]
    SessionStarted {
        /// The operation.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// The agent.
        agent: String,
        /// The agent's own id of the session.
        session_id: SafeText,
        /// The folder that it works in.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        folder: Option<SafeText>,
    },
    /// A failure was classified. Recorded before anything is done about it.
    #[serde(rename = "error.classified")]
    ErrorClassified {
        /// The operation.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// The fault.
        fault: Box<Fault>,
    },
    /// The policy made a decision.
    #[serde(rename = "decision.made")]
    DecisionMade {
        /// The operation, if the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// The number of the failed attempt, counted from 1.
        #[serde(default)]
        attempt: u32,
        /// The decision.
        #[serde(flatten)]
        decision: Decision,
        /// The new reason of the fault, where retries are used up.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reclassified: Option<Reason>,
    },
    /// A recovery was attempted.
    #[serde(rename = "recovery.attempted")]
    RecoveryAttempted {
        /// The operation, if the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// The strategy, e.g. `retry`.
        strategy: String,
        /// Whether it helped.
        success: bool,
        /// The number of the attempt that it led to, counted from 1.
        #[serde(default)]
        attempt: u32,
        /// What was changed for it, e.g. how much of a request was removed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<SafeText>,
    },
    /// A guard was closed, extended or opened.
    #[serde(rename = "guard.updated")]
    GuardUpdated {
        /// The provider.
        provider: Name,
        /// The time until which it is closed; `None` if it is open.
        until: Option<Timestamp>,
    },
    /// An operation waited for a guard.
    #[serde(rename = "guard.waited")]
    GuardWaited {
        /// The provider.
        provider: Name,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// A wait began whose end is known: for a rate limit, or for the time at which a run is to
    /// start.
    #[serde(rename = "wait.started")]
    WaitStarted {
        /// The operation that waits; none where the whole run does.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// The number of the wait in its run, counted from 1; 0 for the wait before a run starts.
        /// Operations that wait for the same limit at the same time share one.
        wait: u32,
        /// Whose limit it is, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        provider: Option<SafeText>,
        /// The model that the limit is of, where it is that of one model.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<SafeText>,
        /// The window of time that the limit counts in, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        window: Option<crate::wait::LimitWindow>,
        /// The end of the limit, as it was stated.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        resets_at: Option<Timestamp>,
        /// The length of the wait.
        wait_ms: u64,
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
    /// Units were given back to a budget.
    #[serde(rename = "budget.refunded")]
    BudgetRefunded {
        /// Which budget.
        budget: Name,
        /// How many.
        units: u64,
        /// How many are left.
        remaining: u64,
    },
    /// A budget is used up.
    #[serde(rename = "budget.exhausted")]
    BudgetExhausted {
        /// Which budget.
        budget: Name,
    },
    /// A breaker opened: further attempts are refused for a while.
    #[serde(rename = "breaker.opened")]
    BreakerOpened {
        /// The provider.
        provider: Name,
        /// The operation.
        operation: SafeText,
        /// Failures in a row.
        failures: u32,
    },
    /// A breaker closed after a success.
    #[serde(rename = "breaker.closed")]
    BreakerClosed {
        /// The provider.
        provider: Name,
        /// The operation.
        operation: SafeText,
    },
    /// A gate ended.
    #[serde(rename = "gate.finished")]
    GateFinished {
        /// The name of the gate: `lint`, `format`, `typecheck`, `test`.
        gate: String,
        /// Whether it passed.
        passed: bool,
        /// The operation that it checked.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// The number of the attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
        /// The duration of the gate.
        #[serde(skip_serializing_if = "is_zero", default)]
        duration_ms: u64,
        /// The reason, if it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<Reason>,
        /// Tests that failed and then passed with nothing changed.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        flaky: Vec<SafeText>,
        /// Where it passed as no worse than the run's base: how many failures were there already.
        #[serde(skip_serializing_if = "is_zero", default)]
        known_failures: u64,
    },
    /// The gates were run on the tree that a run starts from, before its first attempt.
    #[serde(rename = "base.checked")]
    BaseChecked {
        /// The tree, by git's hash; none outside git.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tree: Option<String>,
        /// What each gate said.
        gates: Vec<BaseGate>,
    },
    /// An integration began.
    #[serde(rename = "integration.started")]
    IntegrationStarted {
        /// The operation whose work is integrated.
        operation: SafeText,
        /// The number of the attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
        /// The tip that it is merged onto, if there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        onto: Option<String>,
    },
    /// An integration ended.
    #[serde(rename = "integration.finished")]
    IntegrationFinished {
        /// The operation whose work was integrated.
        operation: SafeText,
        /// The new tip.
        tip: String,
    },
    /// An integration ended in a conflict.
    #[serde(rename = "integration.conflicted")]
    IntegrationConflicted {
        /// The operation whose work was to be integrated.
        operation: SafeText,
        /// The files in conflict.
        files: Vec<String>,
        /// The number of the attempt, counted from 1.
        #[serde(skip_serializing_if = "is_zero", default)]
        attempt: u32,
    },
    /// A commit was made.
    #[serde(rename = "commit.made")]
    CommitMade {
        /// The operation that it belongs to.
        operation: SafeText,
        /// The commit hash.
        sha: String,
        /// The first line of its message.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        subject: Option<SafeText>,
    },
    /// A state machine entered a state.
    #[serde(rename = "state.entered")]
    StateEntered {
        /// The operation, if the run has several.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        operation: Option<SafeText>,
        /// The state.
        state: String,
        /// The error type, for the ERROR state.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_type: Option<String>,
        /// The progress of the task, if it was reported.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        context: Option<Box<ExecutionContext>>,
    },
    /// A sentence of a state, for whoever follows the run.
    #[serde(rename = "state.message")]
    StateMessage {
        /// The sentence.
        message: SafeText,
    },
    /// The tasks of a campaign were registered, or changed by a re-plan.
    #[serde(rename = "tasks.registered")]
    TasksRegistered {
        /// All tasks as they are now: the plan as JSON.
        plan: SafeText,
    },
    /// A question of a planner was answered.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        /// The question.
        question: SafeText,
        /// The answer.
        answer: SafeText,
    },
    /// A person overrode a decision.
    #[serde(rename = "override")]
    Override {
        /// Who overrode it.
        by: SafeText,
        /// What was overridden.
        what: SafeText,
        /// The rationale.
        rationale: SafeText,
    },
    /// A person was notified.
    #[serde(rename = "notified")]
    Notified {
        /// The name of the sink.
        sink: String,
    },
    /// An operation was deferred.
    #[serde(rename = "deferred")]
    Deferred {
        /// The operation.
        operation: SafeText,
        /// The condition that it waits for.
        until: String,
    },
}

/// A plan as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The hash of the table.
    pub table: String,
    /// The hash of what holds for all phases. Older runs have none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub defaults: String,
    /// The phases, in the plan's order.
    pub phases: Vec<PhaseRecord>,
    /// How finished phases are committed.
    pub commit: String,
    /// Where phases run.
    pub isolation: String,
    /// The commit that the run starts from, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The branch that finished work goes to, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branch: Option<String>,
    /// The command that resumes the run.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub resume: String,
    /// The number of attempts that a phase has for its own mistakes.
    #[serde(default = "two")]
    pub max_attempts: u32,
    /// Paths that differed from the last commit before the run, where phases run in the project's
    /// own folder.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<SafeText>,
    /// The format that the plan was read as, where it is not Backstop's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub format: Option<String>,
    /// What a phase of the run is: a `phase` or a `task` of the document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<String>,
}

fn two() -> u32 {
    2
}

/// A phase as it was when its plan was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// The id in its canonical spelling.
    pub id: String,
    /// The id as the plan spells it.
    pub shown: SafeText,
    /// Its name.
    pub name: SafeText,
    /// The hash of its row and section, without the marks that Backstop sets.
    pub hash: String,
    /// The ids of the phases that it depends on.
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
    /// The commit that holds its tree, if it was saved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub saved: Option<String>,
    /// The commit that it started from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The numbers of the tasks that were done, counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks_done: Vec<u32>,
    /// How many tasks there are.
    #[serde(default)]
    pub tasks_total: u32,
    /// The message for its commit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<SafeText>,
    /// The number of commits that the agent made itself; they are a part of the work.
    #[serde(default)]
    pub own_commits: u32,
    /// Input tokens, as the agent reports them.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tokens_in: u64,
    /// Output tokens, as the agent reports them.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tokens_out: u64,
    /// The cost in millionths of a dollar, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_millionths: Option<u64>,
    /// The changed paths, where they are not in a commit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<SafeText>,
    /// Signs that the work weakened what it is judged by, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub weakened: Vec<SafeText>,
}

/// What a gate said of the tree that a run starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseGate {
    /// The name of the gate.
    pub gate: String,
    /// The command that checks, as one would type it.
    pub check: SafeText,
    /// What it said.
    pub state: BaseState,
    /// The reason, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
    /// What failed, one by one: tests, or files with findings. Empty where that cannot be told.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failures: Vec<SafeText>,
    /// The tool that is missing, if one is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub missing: Option<SafeText>,
}

/// Whether a gate passes on the tree that a run starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseState {
    /// It passes.
    Passed,
    /// It fails: later work is judged by what it makes worse.
    Failed,
    /// Its tool is missing: it counts from the phase on that brings it.
    Missing,
}

impl Delivery {
    /// What the attempt used, where the agent says so.
    pub fn usage(&self) -> Option<Usage> {
        #[expect(clippy::cast_precision_loss)] // For people; a dollar more or less in nine billion.
        let cost_usd = self.cost_millionths.map(|millionths| millionths as f64 / 1e6);
        let is_known = self.tokens_in > 0 || self.tokens_out > 0 || cost_usd.is_some();
        is_known.then_some(Usage { input_tokens: self.tokens_in, output_tokens: self.tokens_out, cost_usd })
    }
}

/// Zero is left out, as in older events that do not have the field.
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
    SessionStarted = "session.started",
    ErrorClassified = "error.classified",
    DecisionMade = "decision.made",
    RecoveryAttempted = "recovery.attempted",
    GuardUpdated = "guard.updated",
    GuardWaited = "guard.waited",
    WaitStarted = "wait.started",
    BudgetConsumed = "budget.consumed",
    BudgetRefunded = "budget.refunded",
    BudgetExhausted = "budget.exhausted",
    BreakerOpened = "breaker.opened",
    BreakerClosed = "breaker.closed",
    GateFinished = "gate.finished",
    BaseChecked = "base.checked",
    IntegrationStarted = "integration.started",
    IntegrationFinished = "integration.finished",
    IntegrationConflicted = "integration.conflicted",
    CommitMade = "commit.made",
    StateEntered = "state.entered",
    StateMessage = "state.message",
    TasksRegistered = "tasks.registered",
    QuestionAnswered = "question.answered",
    Override = "override",
    Notified = "notified",
    Deferred = "deferred",
}

impl EventKind {
    /// The end of a run that made no attempt of its own.
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
