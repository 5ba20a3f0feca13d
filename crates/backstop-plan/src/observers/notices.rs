//! Tells people what they should know before a run ends: that it waits for a rate limit, and until
//! when, once for each wait and only where it is long; and that a phase has changed what it is
//! judged by.

use crate::record::RunRecord;
use backstop_core::{Event, EventKind};
use backstop_runtime::host::{HostState, Observer, ObserverError, operation};
use backstop_runtime::{Project, aftermath};
use std::sync::Arc;
use std::time::Duration;

/// Shorter waits are nobody's business.
const WORTH_TELLING: Duration = Duration::from_secs(10 * 60);

/// Tells people of waits and of work that somebody should look at.
pub(crate) struct Notices {
    project: Arc<Project>,
    /// The number of the last wait that was told.
    told: u32,
}

impl Notices {
    pub(crate) fn new(project: &Arc<Project>) -> Self {
        Self { project: Arc::clone(project), told: 0 }
    }

    /// Tells of a successful attempt with signs that it weakened what it is judged by.
    fn flagged(&self, event: &Event, state: &HostState<'_, RunRecord>) {
        let EventKind::AttemptFinished { operation, success: true, delivery: Some(delivery), .. } =
            &event.kind
        else {
            return;
        };
        let Some(phase) = state.record.phase_of(operation.raw()).filter(|_| !delivery.weakened.is_empty())
        else {
            return;
        };
        let plan = state.record.path();
        aftermath::work_flagged(&self.project, plan, &phase.plan.shown, event.run, &delivery.weakened);
    }
}

impl Observer<RunRecord> for Notices {
    fn started(&mut self, _: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        // Those before a crash were told then.
        self.told = state.record.progress.waits.all().iter().map(|wait| wait.number).max().unwrap_or(0);
        Ok(())
    }

    fn recorded(&mut self, events: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        for event in events {
            self.flagged(event, state);
            let EventKind::WaitStarted { wait, wait_ms, .. } = &event.kind else { continue };
            let length = Duration::from_millis(*wait_ms);
            if *wait <= self.told || length < WORTH_TELLING {
                continue;
            }
            let Some(phase) = operation(&event.kind).and_then(|id| state.record.phase_of(id.raw())) else {
                continue;
            };
            let Some(error) = phase.node.errors.last() else { continue };
            self.told = *wait;
            let (plan, until) = (state.record.path(), event.at.after(length));
            aftermath::run_waits(&self.project, plan, &phase.plan.shown, event.run, &error.fault, until);
        }
        Ok(())
    }
}
