//! The vocabulary of Backstop as types, and its pure logic.
//!
//! Backstop treats every failure the same way: *classify, decide, recover, record*. A [`Signal`] is
//! the raw evidence of a failed attempt, a [`Fault`] is a classified signal, a [`Reason`] is one
//! row of the taxonomy, a [`Decision`] is what a [`Policy`] says to do, an [`Event`] is what is
//! recorded. A [`Machine`] holds the state of one operation and makes the decisions.
//!
//! This crate must not do I/O, read a clock or draw a random number: time and randomness are
//! arguments. That makes everything above it testable without sleeping.
//!
//! ```
//! use backstop_core::{Class, Reason, Retry};
//!
//! let reason: Reason = "rate_limited".parse().unwrap();
//! assert_eq!(reason.class(), Class::Transient);
//! assert_eq!(reason.retry(), Retry::Later);
//! assert!(reason.retryable());
//! println!("{}: {}", reason, reason.info().remedy);
//! ```

mod advice;
mod backoff;
mod boot;
pub mod breaker;
pub mod budget;
mod class;
mod cleaned;
mod condition;
mod confidence;
mod counts;
mod decision;
pub mod deferred;
mod digest;
pub mod drift;
pub mod duration;
mod event;
mod fault;
mod file_action;
pub mod guard;
mod hash;
mod hinted_error;
mod http_answer;
mod id;
pub mod json;
mod machine;
mod machine_state;
pub mod nearest;
pub mod order;
mod output_log;
mod policy;
mod profiles;
mod reason;
mod redact;
pub mod request_window;
mod retry_budget;
mod run_summary;
mod safe;
mod schedule;
mod seed;
mod shape;
pub mod shell;
mod signal;
mod signature;
mod signature_history;
mod task;
mod time;
mod usage;
pub mod wait;
mod work_at;

pub use advice::{NetworkTrouble, advises_repeating};
pub use backoff::{Backoff, DELAY_MAX, Delays, Jitter, Wait};
pub use boot::{BootTime, ClockReading};
pub use class::{Class, Retry, Severity};
pub use cleaned::Cleaned;
pub use condition::Condition;
pub use confidence::{Confidence, ConfidenceLevel};
pub use counts::{AgentUse, Counts, Reported, Share, Stats};
pub use decision::{Action, Decision};
pub use digest::{Sha256, hex};
pub use event::{
    BaseGate, BaseState, Delivery, EVENT_SCHEMA, Event, EventKind, ExecutionContext, Outcome, PhaseRecord,
    PlanRecord, Record, RecordError,
};
pub use fault::{Evidence, Exception, Facts, Fault, LEARNED};
pub use file_action::FileAction;
pub use hash::fnv1a;
pub use hinted_error::{ErrorKind, HintedError};
pub use http_answer::HttpAnswer;
pub use id::{EventId, IdError, Name, RunId};
pub use machine::{Experience, Failure, FallbackChoice, Machine, Stage, TRIES_TO_LEARN, Verdict};
pub use machine_state::{MachineLimits, MachineState, Observe, Resource, Shortage};
pub use output_log::{LoggedOutput, OutputLog, OutputStream};
pub use policy::{ATTEMPTS_MAX, Allowance, Cell, Exhausted, How, LimitWaits, On, Policy, World};
pub use profiles::{PROFILES, profile};
pub use reason::{Reason, ReasonInfo, TAXONOMY, UnknownReason};
pub use redact::{MASK, RedactStream, Redactor};
pub use retry_budget::{Recent, RetryBudget};
pub use run_summary::{ProcessId, RunState, RunSummary};
pub use safe::SafeText;
pub use schedule::{
    Command, End, Graph, GraphError, Growth, GrowthError, Happening, LimitWait, Merge, MergeError, NewNode,
    NodeChange, NodeState, OnFailure, Parallel, RetryWhen, Rules, Schedule,
};
pub use seed::{SEED_NAMES, Seed, SeedName, from_seed_name};
pub use shape::Shape;
pub use signal::{Dispatch, Signal, Surface, signal_name, signal_number};
pub use signature::signature;
pub use signature_history::SignatureHistory;
pub use task::{TaskRecord, TaskState, TaskStatus};
pub use time::Timestamp;
pub use usage::Usage;
pub use wait::{Clock, Hints, LimitWindow, Window, Zone};
pub use work_at::WorkAt;
