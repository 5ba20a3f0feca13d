//! The store of shared limits, as commands use it.

use crate::context::{self, Context};
use crate::error::CliError;
use crate::terminal;
use backstop_core::guard::{CLOSED_MAX, Closed, UNNAMED_WAIT};
use backstop_core::{EventKind, Fault, Name, Outcome, Reason, SafeText};
use backstop_store::{GuardState, LimitStore, RunHeader, StoreError};
use std::time::Duration;

/// How often a waiter looks whether it is still wanted.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Opens the shared limits. A damaged file is set aside: what it knew is lost, which means open guards and one warning.
pub(crate) fn open(context: &Context) -> Result<LimitStore, CliError> {
    let folder = context.folder()?;
    match LimitStore::open(&folder) {
        Err(StoreError::Corrupt { file, why }) => {
            let aside = folder.quarantine_limits()?;
            let place = aside.map(|p| p.display().to_string()).unwrap_or_default();
            terminal::warn(
                &format!(
                    "{} was damaged ({why}) and is set aside as {place}; guards are open, budgets are not set",
                    file.display()
                ),
                None,
            );
            Ok(LimitStore::open(&folder)?)
        }
        other => Ok(other?),
    }
}

/// Closes the guard of a provider that refused, for as long as it asks.
pub(crate) fn learn_refusal(
    store: &LimitStore,
    provider: &Name,
    fault: &Fault,
) -> Result<GuardState, StoreError> {
    let now = context::now();
    let asked = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let why = if asked.is_some() { "the server asks to wait" } else { "a refusal without a time" };
    let wait = asked.unwrap_or(UNNAMED_WAIT).min(CLOSED_MAX);
    store.learn(provider, Some(Closed { learned_at: now, until: now.after(wait), why: why.to_owned() }))
}

/// What it is that a provider's guard is closed for longer than anybody waits.
pub(crate) fn limited(provider: &Name, closed: &Closed) -> Fault {
    let left = closed.left(context::now());
    let mut fault = Fault::new(Reason::RateLimited);
    let cause = format!("{provider} is limited for {}: {}", backstop_report::duration(left), closed.why);
    fault.cause = Some(SafeText::new(cause));
    fault.facts.provider = Some(SafeText::new(provider.to_string()));
    fault.facts.retry_after_seconds = Some(left.as_secs_f64());
    fault
}

/// Sleeps in parts, so that whoever is no longer wanted ends soon. Says whether it was slept through.
pub(crate) fn sleep_while(step: Duration, wanted: &dyn Fn() -> bool) -> bool {
    let mut left = step;
    while !left.is_zero() && wanted() {
        let part = left.min(LOOK_EVERY);
        std::thread::sleep(part);
        left -= part;
    }
    wanted()
}

/// Records what a person overrides outside a run: as a run of its own, with its rationale.
pub(crate) fn record_override(
    context: &Context,
    surface: &str,
    what: &str,
    why: Option<&str>,
) -> Result<(), CliError> {
    let journal = context.journal()?;
    let (caller, session) = context::caller_and_session();
    let header = RunHeader {
        session: session.map(SafeText::new),
        caller: caller.clone().map(SafeText::new),
        ..RunHeader::new(surface, context::host(), context::random())
    };
    let events = vec![
        EventKind::RunStarted { operation: SafeText::new(what), folder: None, profile: None, parent: None },
        EventKind::Override {
            by: SafeText::new(caller.unwrap_or_else(|| "command line".to_owned())),
            what: SafeText::new(what),
            rationale: SafeText::new(why.unwrap_or("none given")),
        },
        EventKind::ended(Outcome::Done, None),
    ];
    journal.begin(header, events)?;
    Ok(())
}
