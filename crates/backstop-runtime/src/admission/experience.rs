//! What failures teach: whether retries of their kind ever helped, and whether something goes round
//! in circles.

use super::OperationAdmission;
use crate::project::Project;
use backstop_core::{Experience, Fault, Reason};

/// The same failure so often in a row, with no success between, is a loop.
pub const LOOP_AT: u32 = 3;

/// What a fault is known by: its message with the variable parts taken out.
pub fn signature_of(fault: &Fault) -> String {
    let text = match &fault.cause {
        Some(cause) => cause.raw().to_owned(),
        None => fault.evidence.first().map(|e| e.text.raw().to_owned()).unwrap_or_default(),
    };
    format!("{}: {}", fault.reason, backstop_core::signature(&text))
}

/// What is known of such failures.
pub(super) fn of(project: &Project, fault: &Fault) -> Option<Experience> {
    let known = project.limits().ok()?.signature_history(&signature_of(fault)).ok()??;
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Some(Experience { retried: count(known.retried), cured: count(known.cured) })
}

impl OperationAdmission {
    /// The operation has come to its end: what was learned from its failures, in order. Gives how
    /// often in a row it has failed the same way, where that is a loop.
    pub fn ended(&self, faults: &[Fault], succeeded: bool, attempts: u32) -> Option<u32> {
        let place = &self.limits.place;
        if faults.is_empty() {
            if let Ok(Some(store)) = self.project().existing_limits() {
                let _ = store.end_streak(place);
            }
            return None;
        }
        let store = self.project().limits().ok()?;
        for (index, fault) in faults.iter().enumerate() {
            let retried = u64::from(u32::try_from(index).unwrap_or(u32::MAX) + 1 < attempts);
            let cured = u64::from(succeeded && index + 1 == faults.len());
            let _ = store.note_experience(&signature_of(fault), fault.reason, 1, retried, cured);
        }
        if succeeded {
            let _ = store.end_streak(place);
            return None;
        }
        let last =
            faults.last().filter(|f| !matches!(f.reason, Reason::BudgetExhausted | Reason::Interrupted))?;
        store.note_streak(place, &signature_of(last)).ok().filter(|count| *count >= LOOP_AT)
    }
}
