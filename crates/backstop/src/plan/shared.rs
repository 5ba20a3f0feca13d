//! Rate limits that plans share with everything else that runs on this account.

use crate::context::{self, Context};
use crate::guard::{Waited, await_open};
use crate::limits;
use backstop_core::guard::{CLOSED_MAX, Closed, UNNAMED_WAIT};
use backstop_core::{Fault, Name, Reason, SafeText};
use backstop_exec::Stop;
use backstop_plan::site::Shared;
use std::time::Duration;

/// The longest wait for a guard that an attempt makes in its slot; longer ones are the scheduler's, which has limits for them
/// and lets others work meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How often a waiter looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The guards of this user.
pub(super) struct Guards<'g>(pub(super) &'g Context);

impl Shared for Guards<'_> {
    fn before(&self, provider: &str, stop: &Stop, waiting: &dyn Fn(Duration)) -> Option<Fault> {
        let provider: Name = provider.parse().ok()?;
        // A guard that cannot be asked is an open one.
        let store = limits::open(self.0).ok()?;
        let closed = store.guard(&provider).ok()??.closed?;
        waiting(closed.left(context::now()));
        let mut sleep = |step: Duration| {
            let mut left = step;
            while !left.is_zero() && stop.requests() == 0 {
                let part = left.min(LOOK_EVERY);
                std::thread::sleep(part);
                left -= part;
            }
            stop.requests() == 0
        };
        match await_open(&store, &provider, Some(WAIT_MAX), &mut sleep) {
            Ok(Waited::TooLong(closed)) => {
                let left = closed.left(context::now());
                let mut fault = Fault::new(Reason::RateLimited);
                let cause =
                    format!("{provider} is limited for {}: {}", backstop_report::duration(left), closed.why);
                fault.cause = Some(SafeText::new(cause));
                fault.facts.provider = Some(SafeText::new(provider.to_string()));
                fault.facts.retry_after_seconds = Some(left.as_secs_f64());
                Some(fault)
            }
            Ok(Waited::Cancelled) => Some(Fault::new(Reason::Interrupted)),
            _ => None,
        }
    }

    fn failed(&self, provider: &str, fault: &Fault) {
        let named = fault.facts.provider.as_ref().map(|p| p.raw().to_ascii_lowercase());
        let Ok(provider) = named.as_deref().unwrap_or(provider).parse::<Name>() else { return };
        if fault.reason != Reason::RateLimited {
            return;
        }
        let Ok(store) = limits::open(self.0) else { return };
        let now = context::now();
        let asked = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let why = if asked.is_some() { "the server asks to wait" } else { "a refusal without a time" };
        let wait = asked.unwrap_or(UNNAMED_WAIT).min(CLOSED_MAX);
        let _ = store
            .learn(&provider, Some(Closed { learned_at: now, until: now.after(wait), why: why.to_owned() }));
    }
}
