//! Rate limits that plans share with everything else that runs on this account.

use crate::context::{self, Context};
use crate::guard::{Waited, await_open};
use crate::{freeze, limits};
use backstop_core::{EventKind, Fault, Name, Reason};
use backstop_plan::workspace::{Equipment, Worker};
use backstop_runtime::host::{Admission, AttemptJob, Refusal, Waiting};
use std::time::Duration;

/// The longest wait for a guard that an attempt makes in its slot; longer ones are the scheduler's, which has limits for them
/// and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The guards of this user, for the phases of a plan.
pub(super) struct Guards<'g> {
    context: &'g Context,
    /// The provider of each phase's agent.
    providers: Vec<Option<Name>>,
}

impl<'g> Guards<'g> {
    pub(super) fn new(context: &'g Context, equipment: &[Equipment]) -> Self {
        let provider = |equipment: &Equipment| match &equipment.worker {
            Worker::Agent { agent, .. } => agent.provider.as_ref()?.parse().ok(),
            Worker::Command(_) => None,
        };
        Self { context, providers: equipment.iter().map(provider).collect() }
    }

    fn provider(&self, node: usize) -> Option<&Name> {
        self.providers.get(node)?.as_ref()
    }

    fn await_guard(&self, job: &AttemptJob, waiting: Waiting<'_>) -> Result<Option<EventKind>, Box<Fault>> {
        // A guard that cannot be asked is an open one.
        let Some(provider) = self.provider(job.node) else { return Ok(None) };
        let Ok(store) = limits::open(self.context) else { return Ok(None) };
        let Some(closed) = store.guard(provider).ok().flatten().and_then(|guard| guard.closed) else {
            return Ok(None);
        };
        waiting(provider.as_str(), closed.left(context::now()));
        let mut sleep = |step| limits::sleep_while(step, &|| job.stop.requests() == 0);
        match await_open(&store, provider, Some(WAIT_MAX), &mut sleep) {
            Ok(Waited::TooLong(closed)) => Err(Box::new(limits::limited(provider, &closed))),
            Ok(Waited::Cancelled) => Err(Box::new(Fault::new(Reason::Interrupted))),
            Ok(Waited::Open(waited)) if waited >= limits::LOOK_EVERY => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                Ok(Some(EventKind::GuardWaited { provider: provider.clone(), waited_ms }))
            }
            _ => Ok(None),
        }
    }
}

impl Admission for Guards<'_> {
    fn before(&self, job: &AttemptJob, waiting: Waiting<'_>) -> Result<Vec<EventKind>, Refusal> {
        let waited = self.await_guard(job, waiting);
        let refuse = |fault| Refusal { fault, events: Vec::new() };
        waited.map(|event| event.into_iter().collect()).map_err(refuse)
    }

    fn failed(&self, node: usize, fault: &Fault) -> Vec<EventKind> {
        if fault.reason != Reason::RateLimited {
            return Vec::new();
        }
        let named = fault.facts.provider.as_ref().map(|p| p.raw().to_ascii_lowercase());
        let named = named.and_then(|name| name.parse::<Name>().ok());
        let Some(provider) = named.or_else(|| self.provider(node).cloned()) else { return Vec::new() };
        let learned = limits::open(self.context)
            .ok()
            .and_then(|store| limits::learn_refusal(&store, &provider, fault).ok());
        let updated = learned.map(|state| EventKind::GuardUpdated {
            provider,
            until: state.closed.map(|closed| closed.until),
        });
        updated.into_iter().collect()
    }

    fn frozen(&self) -> Option<Reason> {
        freeze::frozen(self.context).map(|freeze| freeze.reason)
    }
}
