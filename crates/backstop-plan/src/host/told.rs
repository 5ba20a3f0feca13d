//! What a host tells: to whoever watches, to the log, and at its end.

use super::{Ask, Note};
use crate::record::{RunRecord, Status};
use crate::site::Conclusion;
use backstop_core::{Action, End, Event, EventKind, Fault, Reason, SafeText, Schedule};
use backstop_report::plan::{LogEvent, log_line as line};
use backstop_store::StoreError;
use serde_json::{Value, json};
use std::time::Duration;

/// Why a host cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing can be recorded: then nothing may be done.
    #[error("the run stops, since nothing can be recorded: {0}")]
    Store(#[from] StoreError),
}

impl HostError {
    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            HostError::Store(error) => error.hint(),
        }
    }
}

/// How a run came to its end.
#[derive(Debug)]
pub struct Ending {
    /// How.
    pub end: End,
    /// Of what, where it halted.
    pub reason: Option<Reason>,
    /// All that is known.
    pub record: RunRecord,
    /// Where the work is, where the run is complete.
    pub conclusion: Option<Conclusion>,
    /// What kept the work from coming to the user, where every phase is complete and it does not.
    pub unconcluded: Option<Box<Fault>>,
    /// Why it was stopped, where the project was frozen meanwhile.
    pub frozen: Option<Reason>,
}

/// Whoever watches a run.
pub trait Watch {
    /// How often [`Watch::tick`] is wanted.
    fn interval(&self) -> Option<Duration>;
    /// Time has passed.
    fn tick(&mut self, record: &RunRecord, schedule: &Schedule);
    /// This was recorded.
    fn recorded(&mut self, events: &[Event], record: &RunRecord, schedule: &Schedule);
    /// Something for people, about a phase.
    fn noted(&mut self, node: usize, note: &Note);
    /// Somebody asked for the end while so many attempts were under way.
    fn asked(&mut self, ask: Ask, running: usize);
    /// Something is not as it should be and does not stop the run.
    fn trouble(&mut self, what: &str);
}

/// The one line that says what a fault was.
pub(crate) fn message(fault: &Fault) -> SafeText {
    fault.cause.clone().unwrap_or_else(|| fault.suggested_action.clone())
}

/// The line of an event in the execution log, where it has one.
pub(super) fn log_line(event: &Event, record: &RunRecord) -> Option<String> {
    let of = |id: &SafeText| record.phases.get(id.raw());
    let logged = match &event.kind {
        EventKind::RunStarted { operation, .. } => {
            LogEvent::Start { run: event.run, plan: operation.clone(), phases: record.order.len() as u64 }
        }
        EventKind::PlanLoaded { plan } => LogEvent::Config(vec![
            ("commit", SafeText::new(plan.commit.clone())),
            ("isolation", SafeText::new(plan.isolation.clone())),
            ("phases", SafeText::new(plan.phases.len().to_string())),
        ]),
        EventKind::RunResumed {} => {
            LogEvent::Resume { run: event.run, done: record.count(Status::Complete) as u64 }
        }
        EventKind::AttemptStarted { operation, .. } => {
            let attempt = of(operation)?.attempt;
            let of = record.plan.max_attempts.max(attempt);
            LogEvent::PhaseStart { phase: operation.clone(), attempt, of }
        }
        EventKind::AttemptLost { operation, why, .. } => LogEvent::PhaseFail {
            phase: operation.clone(),
            attempt: of(operation)?.attempt,
            reason: Reason::Interrupted,
            message: why.clone(),
        },
        EventKind::ErrorClassified { operation, fault, .. } => LogEvent::PhaseFail {
            phase: operation.clone(),
            attempt: of(operation)?.attempt,
            reason: fault.reason,
            message: message(fault),
        },
        EventKind::DecisionMade { operation: Some(operation), decision, .. } => match &decision.action {
            Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                if after.is_zero() {
                    LogEvent::Retry {
                        phase: operation.clone(),
                        attempt: *attempt,
                        of: *of,
                        after: Vec::new(),
                    }
                } else {
                    let last = record.phases.get(operation.raw()).and_then(|phase| phase.errors.last());
                    LogEvent::Wait {
                        phase: operation.clone(),
                        reason: last.map_or(Reason::Unknown, |error| error.fault.reason),
                        until: Some(event.at.after(*after)),
                    }
                }
            }
            _ => return None,
        },
        EventKind::GateFinished { gate, passed, operation: Some(phase), duration_ms, .. } => {
            LogEvent::Verify {
                phase: phase.clone(),
                gate: SafeText::new(gate.clone()),
                passed: *passed,
                elapsed: Duration::from_millis(*duration_ms),
            }
        }
        EventKind::IntegrationFinished { operation, tip } => {
            LogEvent::Integrate { phase: operation.clone(), tip: SafeText::new(tip.clone()) }
        }
        EventKind::IntegrationConflicted { operation, files, .. } => LogEvent::Conflict {
            phase: operation.clone(),
            files: files.iter().map(|file| SafeText::new(file.clone())).collect(),
        },
        EventKind::CommitMade { operation, sha, subject } => LogEvent::Commit {
            phase: operation.clone(),
            sha: SafeText::new(sha.clone()),
            subject: subject.clone().unwrap_or_default(),
        },
        EventKind::StateEntered { operation: Some(phase), state, .. } if state == Status::Complete.name() => {
            let progress = of(phase)?;
            LogEvent::PhaseComplete {
                phase: phase.clone(),
                attempt: progress.attempt,
                elapsed: Duration::from_millis(progress.worked_ms),
            }
        }
        EventKind::Override { by, what, rationale } => {
            LogEvent::Override { by: by.clone(), what: what.clone(), rationale: rationale.clone() }
        }
        EventKind::RunHalted { reason, resume } => LogEvent::Halt {
            reason: *reason,
            message: SafeText::new(reason.info().remedy),
            resume: SafeText::new(resume.clone()),
        },
        EventKind::RunEnded { duration_ms, .. } => LogEvent::Complete {
            phases: record.order.len() as u64,
            elapsed: Duration::from_millis(*duration_ms),
        },
        _ => return None,
    };
    Some(format!("{}\n", line(event.at, &logged).trim_end()))
}

/// What is known of the whole run, as it is written to `config.json`.
pub(super) fn config(record: &RunRecord, resume: &str) -> Value {
    json!({
        "schema": 1,
        "version": 1,
        "run": record.run,
        "plan_path": record.path,
        "commit_mode": record.plan.commit,
        "isolation": record.plan.isolation,
        "started_at": record.started_at,
        "resumed": record.resumed,
        "tip": record.tip,
        "resume": resume,
        "phases": {
            "total": record.order.len(),
            "completed": record.count(Status::Complete),
            "failed": record.count(Status::Failed),
            "blocked": record.count(Status::Blocked),
            "running": record.count(Status::Running),
            "pending": record.count(Status::Pending),
        },
    })
}
