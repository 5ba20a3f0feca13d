//! What failures teach: whether retries of their kind ever helped, and whether something goes round
//! in circles.

use super::{OperationAdmission, fingerprint};
use crate::project::Project;
use backstop_core::{Experience, Fault, Reason};

/// The same failure so often in a row, with nothing changed in between, is a loop.
pub const LOOP_AT: u32 = 3;

/// The same failure several times in a row, with no success and no changed file in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streak {
    /// What the failure is known by.
    pub signature: String,
    /// How many there were.
    pub count: u32,
}

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
    /// The failures in a row before this operation began. A file that changed since the last one
    /// ends the streak. It is found out once: what the operation itself writes is no change.
    pub fn streak(&self) -> Option<&Streak> {
        if self.limits.place.is_empty() {
            return None;
        }
        self.streak
            .get_or_init(|| {
                let known = self.known_streak();
                // A call that succeeds, and never failed before, writes nothing.
                if known.is_none()
                    && let Some(store) = self.existing_store()
                    && store.streak(&self.limits.place).is_ok_and(|stored| stored.is_some())
                {
                    let _ = store.end_streak(&self.limits.place);
                }
                known
            })
            .as_ref()
    }

    /// The failures in a row, without changing what is known of them.
    pub fn known_streak(&self) -> Option<Streak> {
        let (stored, count) = self.read(self.existing_store()?.streak(&self.limits.place))??;
        let (then, signature) = stored.split_once(' ')?;
        let same = fingerprint::of(&self.project().root).as_deref() == Some(then);
        same.then(|| Streak { signature: signature.to_owned(), count })
    }

    /// The operation has come to its end: what was learned from its failures, in order. Gives how
    /// often in a row it has failed the same way, where that is a loop.
    pub fn ended(&self, faults: &[Fault], succeeded: bool, attempts: u32) -> Option<u32> {
        let place = &self.limits.place;
        if faults.is_empty() {
            // What was refused before it began says nothing.
            if succeeded
                && !place.is_empty()
                && let Some(store) = self.existing_store()
            {
                let _ = store.end_streak(place);
            }
            return None;
        }
        if self.shared.unreadable.get().is_some() {
            return None;
        }
        let store = self.project().limits().ok()?;
        for (index, fault) in faults.iter().enumerate() {
            let retried = u64::from(u32::try_from(index).unwrap_or(u32::MAX) + 1 < attempts);
            let cured = u64::from(succeeded && index + 1 == faults.len());
            let _ = store.note_experience(&signature_of(fault), fault.reason, 1, retried, cured);
        }
        if place.is_empty() {
            return None;
        }
        if succeeded {
            let _ = store.end_streak(place);
            return None;
        }
        let no_failure_of_its_own = |f: &Fault| {
            matches!(f.reason, Reason::BudgetExhausted | Reason::StuckDetected | Reason::Interrupted)
        };
        let signature = signature_of(faults.last().filter(|f| !no_failure_of_its_own(f))?);
        let before = self.streak().filter(|streak| streak.signature == signature);
        let count = before.map_or(1, |streak| streak.count.saturating_add(1));
        // A project without a fingerprint is never in a loop: nobody can say that nothing changed.
        let now = fingerprint::of(&self.project().root)?;
        store.set_streak(place, &format!("{now} {signature}"), count).ok()?;
        (count >= LOOP_AT).then_some(count)
    }
}
