//! An update that could not be recorded: where the log is there and the update is still due, it is
//! recorded once more; where it is on record already, the run goes on from it.

use super::{Fold, Host, HostError, RunLogError, operation};
use backstop_core::{Event, EventKind, Fault, Reason, SafeText};

/// What failed, as people and `EMIT` lines name it. No node has this id.
const OPERATION: &str = "journal.append";
/// The update was due, and was recorded once more.
const RECORD_AGAIN: &str = "record_again";
/// The update was on record, though that was not confirmed.
const ALREADY_RECORDED: &str = "already_recorded";

impl<R: Fold + Clone + Send + 'static, C: Send> Host<'_, R, C> {
    /// What is on record after all, of what could not be recorded. The failure is recorded before
    /// anything is done about it: where that fails too, the log cannot be used, and the run is
    /// over.
    pub(super) fn record_again(
        &mut self,
        kinds: Vec<EventKind>,
        error: RunLogError,
    ) -> Result<Vec<Event>, HostError> {
        let known = self.progress().seq;
        let Ok(found) = self.parts.log.load() else { return Err(error.into()) };
        let newer: Vec<Event> = found.into_iter().filter(|event| event.seq > known).collect();
        if is_update(&newer, &kinds) {
            self.parts.log.continue_from(known + newer.len() as u64)?;
            self.pending.extend([failure(&error), recovery(ALREADY_RECORDED, true)]);
            return Ok(newer);
        }
        if !newer.is_empty() || matches!(error, RunLogError::Conflict { .. }) {
            return Err(error.into());
        }
        let Ok(failed) = self.parts.log.append(known, vec![failure(&error)]) else {
            return Err(error.into());
        };
        self.follow(&failed)?;
        let known = self.progress().seq;
        let update = kinds.into_iter().chain([recovery(RECORD_AGAIN, true)]).collect();
        self.parts.log.append(known, update).map_err(|again| {
            let _ = self.parts.log.append(known, vec![recovery(RECORD_AGAIN, false)]);
            again.into()
        })
    }
}

/// Whether these recorded events are this update. Secrets are masked in what is recorded, so texts
/// are not compared.
fn is_update(recorded: &[Event], update: &[EventKind]) -> bool {
    let is_same = |(event, kind): (&Event, &EventKind)| {
        event.kind.name() == kind.name() && operation(&event.kind) == operation(kind)
    };
    recorded.len() == update.len() && recorded.iter().zip(update).all(is_same)
}

fn failure(error: &RunLogError) -> EventKind {
    let mut fault = Fault::new(error.reason());
    fault.cause = Some(SafeText::new(error.to_string()));
    EventKind::ErrorClassified { operation: OPERATION.into(), attempt: 1, fault: Box::new(fault) }
}

fn recovery(strategy: &str, success: bool) -> EventKind {
    EventKind::RecoveryAttempted {
        operation: Some(OPERATION.into()),
        strategy: strategy.to_owned(),
        success,
        attempt: 1,
        detail: None,
    }
}

impl RunLogError {
    /// What it is in the words of the taxonomy.
    fn reason(&self) -> Reason {
        match self {
            RunLogError::Conflict { .. } => Reason::StateInvalid,
            RunLogError::Unavailable { reason, .. } => *reason,
        }
    }
}
