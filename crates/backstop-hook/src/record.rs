//! What is recorded of something that happened elsewhere: a run of its own, ended when it begins.

use backstop_core::{Action, Decision, EventKind, Fault, Name, Outcome, Reason, SafeText};
use backstop_runtime::admission::{Admission, BudgetScope, OperationLimits, sentence_max};
use backstop_runtime::{Opening, Project, ProjectError, Recorder};
use std::sync::Arc;
use std::time::Duration;

/// Begins the record of a hook's run. It must be recorded, or the caller is told why not. The trace
/// is not exported: somebody waits for the answer.
pub(crate) fn begin(
    project: &Project,
    session: Option<SafeText>,
    caller: &str,
    random: Option<u64>,
) -> Result<Recorder, ProjectError> {
    let named = project.process.caller.clone();
    Recorder::begin(
        project,
        Opening {
            session: session.filter(|text| !text.is_empty()),
            caller: Some(named.unwrap_or_else(|| SafeText::new(caller))),
            // What happens inside a run is a part of it.
            parent: project.process.parent,
            random,
            required: true,
            exported: false,
            ..Opening::new("hook")
        },
    )
}

/// How the run of a hook begins.
pub(crate) fn started_event(project: &Project, operation: &SafeText) -> EventKind {
    EventKind::RunStarted {
        operation: operation.clone(),
        folder: Some(SafeText::new(project.root.display().to_string())),
        profile: None,
        parent: project.process.parent,
    }
}

/// How it ends.
pub(crate) fn ended(outcome: Outcome, reason: Option<Reason>) -> EventKind {
    ended_after(1, outcome, reason)
}

/// How it ends, where what it tells of was attempted before.
fn ended_after(attempts: u32, outcome: Outcome, reason: Option<Reason>) -> EventKind {
    EventKind::RunEnded { outcome, reason, attempts, duration_ms: 0, exit: None, next: None }
}

/// Closes the guard of a provider that refused, after that was recorded. Gives what is to be
/// recorded of it. `provider` is who it was where the fault does not say.
pub(crate) fn guard_events(project: &Arc<Project>, provider: Option<&str>, fault: &Fault) -> Vec<EventKind> {
    if fault.reason != Reason::RateLimited {
        return Vec::new();
    }
    let limits = OperationLimits {
        provider: provider.and_then(|name| name.parse::<Name>().ok()),
        client: None,
        command: String::new(),
        budget: None,
        scope: BudgetScope { run: backstop_core::RunId::from_random(0, 4), task: None },
        operation: String::new(),
        place: String::new(),
        wait_max: Duration::ZERO,
        learns: false,
    };
    match Admission::new(Arc::clone(project)).operation(limits, None) {
        Ok(admission) => admission.with_sentence_max(sentence_max(&project.config)).failed(fault),
        Err(_) => Vec::new(),
    }
}

/// Records a fault about which only the agent can do something: what failed first, then what it
/// changes in the shared limits.
pub(crate) fn fault(
    project: &Arc<Project>,
    recorder: &Recorder,
    operation: &SafeText,
    attempt: u32,
    fault: &Fault,
    why: String,
    provider: Option<&str>,
) -> Result<(), ProjectError> {
    let mut kinds = vec![
        started_event(project, operation),
        EventKind::ErrorClassified { operation: operation.clone(), attempt, fault: Box::new(fault.clone()) },
    ];
    if fault.reason == Reason::RateLimited {
        let recorded = recorder.append(std::mem::take(&mut kinds));
        // What cannot be recorded still concerns everybody who shares the limit.
        kinds = guard_events(project, provider, fault);
        recorded?;
    }
    kinds.push(EventKind::DecisionMade {
        operation: None,
        attempt,
        decision: Decision { action: Action::Surface, why },
        reclassified: None,
    });
    kinds.push(ended_after(attempt, Outcome::Failed, Some(fault.reason)));
    recorder.end(kinds)?;
    Ok(())
}
