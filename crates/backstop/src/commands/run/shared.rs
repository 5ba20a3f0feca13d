//! Rate limits that plans share with everything else that runs on this account.

use backstop_core::{Fault, Name, Reason};
use backstop_exec::Stop;
use backstop_plan::site::Shared;
use backstop_runtime::Project;
use backstop_runtime::admission::{GuardWait, Waited, learn_refusal, limited, wait_blocking};
use std::time::Duration;

/// The longest wait for a guard that an attempt makes in its slot; longer ones are the scheduler's, which has limits for them
/// and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The guards of this user.
pub(super) struct Guards<'g>(pub(super) &'g Project);

impl Shared for Guards<'_> {
    fn before(&self, provider: &str, stop: &Stop, waiting: &dyn Fn(Duration)) -> Option<Fault> {
        let provider: Name = provider.parse().ok()?;
        let process = &self.0.process;
        // A guard that cannot be asked is an open one.
        let store = self.0.limits().ok()?;
        let closed = store.guard(&provider).ok()??.closed?;
        waiting(closed.left(process.now()));
        let mut wait = GuardWait::new(provider.clone(), Some(WAIT_MAX));
        match wait_blocking(&mut wait, store, process, &|| stop.requests() > 0) {
            Ok(Waited::TooLong(closed)) => Some(limited(&provider, &closed, process.now())),
            Ok(Waited::Cancelled) => Some(Fault::new(Reason::Interrupted)),
            _ => None,
        }
    }

    fn failed(&self, provider: &str, fault: &Fault) {
        let named = fault.facts.provider.as_ref().map(|p| p.raw().to_ascii_lowercase());
        let Ok(provider) = named.as_deref().unwrap_or(provider).parse::<Name>() else { return };
        if fault.reason == Reason::RateLimited
            && let Ok(store) = self.0.limits()
        {
            let _ = learn_refusal(store, &provider, fault, self.0.process.now());
        }
    }
}
