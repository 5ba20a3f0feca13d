//! The record of kept lists that could not be used: what was wrong with them, what is used instead,
//! and whether they were made anew.

use backstop_core::{EventKind, Failure, FallbackChoice, Fault, Machine, Outcome, Policy, Reason, SafeText};
use backstop_runtime::{Opening, Project, Recorder};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What the journal calls it.
const OPERATION: &str = "the kept lists of tools";
/// What is used instead.
const DISCOVERY: &str = "live discovery";

/// Lists that could not be used, until they are made anew or given up.
#[derive(Debug)]
pub(crate) struct BrokenCache {
    recorder: Recorder,
    strategy: &'static str,
    began: Instant,
}

impl BrokenCache {
    /// Records why the lists cannot be used, before anything is done about it. None, where nothing
    /// can be recorded.
    pub(crate) fn record(project: &Project, policy: &Arc<Policy>, why: &str) -> Option<Self> {
        let operation = SafeText::new(OPERATION);
        let mut fault = Fault::new(Reason::CacheInvalid);
        fault.cause = Some(SafeText::new(project.redactor.redact(why).into_owned()));
        let choice = FallbackChoice { to: DISCOVERY.to_owned(), on: vec![Reason::CacheInvalid] };
        // To read the same file again would give the same.
        let once = Arc::new((**policy).clone().with_attempts(1));
        let mut machine = Machine::new(once).fallbacks([choice]).disabled(project.process.disabled);
        let attempt = machine.begin();
        let verdict = machine.failed(&Failure::new(&fault, Duration::ZERO));
        let strategy = verdict.decision.action.name();
        let started = EventKind::RunStarted {
            operation: operation.clone(),
            folder: None,
            profile: Some(policy.name.to_string()),
            parent: None,
        };
        let opening = Opening { first: vec![started], ..Opening::new("tools") };
        let recorder = Recorder::begin(project, opening).ok()?;
        let classified = EventKind::ErrorClassified { operation, attempt, fault: Box::new(fault) };
        let decided = EventKind::DecisionMade {
            operation: None,
            attempt,
            decision: verdict.decision,
            reclassified: verdict.reclassified,
        };
        recorder.append(vec![classified, decided]).ok()?;
        Some(Self { recorder, strategy, began: Instant::now() })
    }

    /// Records whether the lists were made anew.
    pub(crate) fn end(self, success: bool) {
        let recovered = EventKind::RecoveryAttempted {
            operation: None,
            strategy: self.strategy.to_owned(),
            success,
            attempt: 2,
            detail: Some(SafeText::new(DISCOVERY)),
        };
        let ended = EventKind::RunEnded {
            outcome: if success { Outcome::Done } else { Outcome::Failed },
            reason: (!success).then_some(Reason::CacheInvalid),
            attempts: 2,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            exit: None,
            next: (!success).then(|| SafeText::new("backstop tools refresh")),
        };
        let _ = self.recorder.end(vec![recovered, ended]);
    }
}
