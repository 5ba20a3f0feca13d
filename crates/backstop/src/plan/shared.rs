//! Rate limits that plans share with everything else that runs on this account.

use crate::context::{self, Context};
use crate::guard::{Waited, await_open};
use crate::limits;
use backstop_core::{Fault, Name, Reason};
use backstop_exec::Stop;
use backstop_plan::site::Shared;
use std::time::Duration;

/// The longest wait for a guard that an attempt makes in its slot; longer ones are the scheduler's, which has limits for them
/// and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The guards of this user.
pub(super) struct Guards<'g>(pub(super) &'g Context);

impl Shared for Guards<'_> {
    fn before(&self, provider: &str, stop: &Stop, waiting: &dyn Fn(Duration)) -> Option<Fault> {
        let provider: Name = provider.parse().ok()?;
        // A guard that cannot be asked is an open one.
        let store = limits::open(self.0).ok()?;
        let closed = store.guard(&provider).ok()??.closed?;
        waiting(closed.left(context::now()));
        let mut sleep = |step| limits::sleep_while(step, &|| stop.requests() == 0);
        match await_open(&store, &provider, Some(WAIT_MAX), &mut sleep) {
            Ok(Waited::TooLong(closed)) => Some(limits::limited(&provider, &closed)),
            Ok(Waited::Cancelled) => Some(Fault::new(Reason::Interrupted)),
            _ => None,
        }
    }

    fn failed(&self, provider: &str, fault: &Fault) {
        let named = fault.facts.provider.as_ref().map(|p| p.raw().to_ascii_lowercase());
        let Ok(provider) = named.as_deref().unwrap_or(provider).parse::<Name>() else { return };
        if fault.reason == Reason::RateLimited
            && let Ok(store) = limits::open(self.0)
        {
            let _ = limits::learn_refusal(&store, &provider, fault);
        }
    }
}
