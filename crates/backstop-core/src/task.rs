//! Tasks of other programs whose errors were reported.

use crate::{Reason, RunId, SafeText, Severity, Timestamp};

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It is retried.
    Retrying,
    /// It has failed.
    Failed,
    /// It is deferred until a condition is gone.
    Deferred,
    /// It has failed, and its partial result is used.
    Partial,
    /// A person has to confirm that it is repeated.
    Unconfirmed,
    /// A person or program has resolved it.
    Resolved,
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Retrying, Self::Failed, Self::Deferred, Self::Partial, Self::Unconfirmed, Self::Resolved];

    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrying => "retrying",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
            Self::Partial => "partial",
            Self::Unconfirmed => "unconfirmed",
            Self::Resolved => "resolved",
        }
    }
}

/// What is stored of a task after a report.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// The status.
    pub status: TaskStatus,
    /// The reason of its fault.
    pub reason: Reason,
    /// The severity of its fault.
    pub severity: Severity,
    /// The attempt that failed, counted from 1.
    pub attempt: u32,
    /// The number of attempts allowed.
    pub of: u32,
    /// When it is retried, if it is.
    pub retry_at: Option<Timestamp>,
    /// The run that recorded the report, if it was recorded.
    pub run: Option<RunId>,
    /// The sentence that says why that was decided.
    pub why: SafeText,
    /// What the task was doing, as JSON.
    pub context: Option<SafeText>,
}

/// A task, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Its id.
    pub id: SafeText,
    /// The last report.
    pub record: TaskRecord,
    /// The time of the first report.
    pub first_at: Timestamp,
    /// The time of the last report.
    pub updated_at: Timestamp,
}
