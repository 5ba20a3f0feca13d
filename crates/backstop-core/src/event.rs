//! The catalogue of events: everything that is ever recorded.

use crate::{Action, EventId, Fault, Name, Reason, RunId, Timestamp};
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
    pub session: Option<String>,
    /// The surface that recorded it: `exec`, `hook`, `run`.
    pub surface: String,
    /// Who called, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caller: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// What is run: a command line, a plan's path.
        operation: String,
    },
    /// A run ended by itself.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// How: `done`, `failed`, `partial`.
        outcome: String,
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
        operation: String,
        /// Counted from 1.
        attempt: u32,
    },
    /// An attempt ended.
    #[serde(rename = "attempt.finished")]
    AttemptFinished {
        /// The operation.
        operation: String,
        /// Counted from 1.
        attempt: u32,
        /// Whether it succeeded.
        success: bool,
        /// How long it took.
        duration_ms: u64,
    },
    /// An attempt's worker went away; how the attempt ended is not known.
    #[serde(rename = "attempt.lost")]
    AttemptLost {
        /// The operation.
        operation: String,
        /// Counted from 1.
        attempt: u32,
        /// What is known.
        why: String,
    },
    /// A signal was classified. Recorded before anything is done about it.
    #[serde(rename = "error.classified")]
    ErrorClassified {
        /// The operation.
        operation: String,
        /// Counted from 1.
        attempt: u32,
        /// What it is.
        fault: Box<Fault>,
    },
    /// The policy decided.
    #[serde(rename = "decision.made")]
    DecisionMade {
        /// What to do.
        decision: Action,
        /// Why.
        why: String,
    },
    /// A recovery was tried.
    #[serde(rename = "recovery.attempted")]
    RecoveryAttempted {
        /// Which.
        strategy: String,
        /// Whether it helped.
        success: bool,
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
    /// A gate ended.
    #[serde(rename = "gate.finished")]
    GateFinished {
        /// Which gate: `lint`, `format`, `typecheck`, `test`.
        gate: String,
        /// Whether it passed.
        passed: bool,
    },
    /// An integration began.
    #[serde(rename = "integration.started")]
    IntegrationStarted {
        /// What is integrated.
        operation: String,
    },
    /// An integration ended.
    #[serde(rename = "integration.finished")]
    IntegrationFinished {
        /// What was integrated.
        operation: String,
        /// The new tip.
        tip: String,
    },
    /// An integration met a conflict.
    #[serde(rename = "integration.conflicted")]
    IntegrationConflicted {
        /// What was integrated.
        operation: String,
        /// The files in conflict.
        files: Vec<String>,
    },
    /// A commit was made.
    #[serde(rename = "commit.made")]
    CommitMade {
        /// For what.
        operation: String,
        /// Its hash.
        sha: String,
    },
    /// A state machine entered a state.
    #[serde(rename = "state.entered")]
    StateEntered {
        /// Which state.
        state: String,
        /// The error type, where it is the ERROR state.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_type: Option<String>,
    },
    /// A person overrode a decision.
    #[serde(rename = "override")]
    Override {
        /// Who.
        by: String,
        /// What.
        what: String,
        /// Why.
        rationale: String,
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
        operation: String,
        /// What it waits for.
        until: String,
    },
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
        assert_eq!(json["fault"]["reason"], "rate_limited");
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }
}
