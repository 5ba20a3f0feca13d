//! What is recorded of a report.

use super::{Answer, STATES};
use backstop_core::{EventKind, SafeText};

impl Answer<'_> {
    /// What is recorded, before anybody is answered: the seed's log events among ours.
    pub fn events(&self, folder: Option<&str>) -> Vec<EventKind> {
        let (fault, attempt) = (self.fault, self.attempt);
        let operation = SafeText::new(self.report.task.clone());
        let state = |state: &str, error_type: Option<String>, context| EventKind::StateEntered {
            operation: Some(operation.clone()),
            state: state.to_owned(),
            error_type,
            context,
        };
        vec![
            EventKind::RunStarted {
                operation: operation.clone(),
                folder: folder.map(SafeText::new),
                profile: Some("task".to_owned()),
                parent: None,
            },
            state(STATES[0], self.report.kind.as_ref().map(|kind| kind.raw().to_owned()), None),
            EventKind::ErrorClassified {
                operation: operation.clone(),
                attempt,
                fault: Box::new(fault.clone()),
            },
            state(STATES[1], Some(fault.class.name().to_owned()), Some(Box::new(self.report.context()))),
            EventKind::DecisionMade {
                operation: Some(operation.clone()),
                attempt,
                decision: self.verdict.decision.clone(),
                reclassified: self.verdict.reclassified,
            },
            state(STATES[2], None, None),
            EventKind::RunEnded {
                outcome: self.outcome(),
                reason: Some(self.ended_with().unwrap_or(fault.reason)),
                attempts: attempt,
                duration_ms: 0,
                exit: None,
                // Only the reporter can go on with its task: there is no command for it.
                next: None,
            },
        ]
    }
}
