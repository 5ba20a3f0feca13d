//! Waiting for a provider's guard, and teaching it.

use crate::process::Process;
use backstop_core::guard::{CLOSED_MAX, Closed, UNNAMED_WAIT, wait as until_open};
use backstop_core::{EventKind, Fault, Name, Reason, SafeText, Timestamp};
use backstop_engine::Cancel;
use backstop_store::{LimitStore, StoreError};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often a waiter looks whether the guard was opened by somebody or closed further.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a waiter on a thread looks whether it is still wanted.
const WANTED_EVERY: Duration = Duration::from_millis(100);
/// How long what was read of a guard is believed.
const BELIEVED_FOR: Duration = Duration::from_millis(100);

/// What was read of guards lately, so that many calls at once do not each ask the store.
#[derive(Debug, Default)]
pub(super) struct GuardCache(Mutex<HashMap<Name, (Timestamp, Option<Closed>)>>);

impl GuardCache {
    /// Until when a guard is closed. One that cannot be asked is open.
    pub(super) fn closed(&self, store: &LimitStore, provider: &Name, now: Timestamp) -> Option<Closed> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, closed)) = known.get(provider)
            && now >= *at
            && now.since(*at) < BELIEVED_FOR
        {
            return closed.clone().filter(|closed| closed.holds(now));
        }
        let closed = store.guard(provider).ok().flatten().and_then(|guard| guard.closed);
        known.insert(provider.clone(), (now, closed.clone()));
        closed
    }

    /// It has changed.
    pub(super) fn forget(&self, provider: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(provider);
    }
}

/// How a wait for a guard ended.
#[derive(Debug)]
pub enum Waited {
    /// It is open, after so long.
    Open(Duration),
    /// It opens only after the limit.
    TooLong(Closed),
    /// Nobody wants to wait any more.
    Cancelled,
}

/// What a waiter does next.
#[derive(Debug)]
pub enum Step {
    /// Go on.
    Open,
    /// Sleep so long, then ask again.
    Sleep(Duration),
    /// Not now: it opens only after the limit.
    TooLong(Closed),
}

/// A wait for a guard, step by step. Whoever sleeps is the caller's business.
#[derive(Debug)]
pub struct GuardWait {
    provider: Name,
    limit: Option<Duration>,
    /// The place in the queue, once one was taken.
    place: Option<u64>,
    /// What is waited for, and for how long still.
    current: Option<(Closed, Duration)>,
    waited: Duration,
}

impl GuardWait {
    /// A wait for at most `limit`.
    pub fn new(provider: Name, limit: Option<Duration>) -> Self {
        Self { provider, limit, place: None, current: None, waited: Duration::ZERO }
    }

    /// How long was slept so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// What to do next.
    pub fn next(&mut self, store: &LimitStore, now: Timestamp) -> Result<Step, StoreError> {
        let closed = store.guard(&self.provider)?.and_then(|guard| guard.closed);
        let left = match (closed, &self.current) {
            // It was opened by the passing of time: a little longer, so that not all wake at once.
            // By somebody: at once.
            (None, Some((was, left))) if !was.holds(now) => *left,
            (None, _) => return Ok(Step::Open),
            (Some(closed), Some((was, left))) if closed == *was && !left.is_zero() => *left,
            (Some(closed), _) => {
                let place = match self.place {
                    Some(place) => place,
                    None => *self.place.insert(store.queue(&self.provider)?),
                };
                let left = until_open(&closed, place, now);
                self.current = Some((closed, left));
                left
            }
        };
        if left.is_zero() {
            return Ok(Step::Open);
        }
        let Some((closed, rest)) = &mut self.current else { return Ok(Step::Open) };
        if self.limit.is_some_and(|limit| self.waited + left > limit) {
            return Ok(Step::TooLong(closed.clone()));
        }
        let step = left.min(LOOK_EVERY);
        *rest = left - step;
        self.waited += step;
        Ok(Step::Sleep(step))
    }
}

/// Waits until a guard is open. One whose limit is nearer gets its answer at once.
pub(super) async fn wait(
    store: &LimitStore,
    provider: &Name,
    limit: Duration,
    cancel: &Cancel,
    process: &Process,
) -> Result<Waited, StoreError> {
    let mut wait = GuardWait::new(provider.clone(), Some(limit));
    loop {
        match wait.next(store, process.now())? {
            Step::Open => return Ok(Waited::Open(wait.waited())),
            Step::TooLong(closed) => return Ok(Waited::TooLong(closed)),
            Step::Sleep(step) => {
                if tokio::time::timeout(step, cancel.cancelled()).await.is_ok() {
                    return Ok(Waited::Cancelled);
                }
            }
        }
    }
}

/// The same, on a thread. It looks often whether it is still wanted.
pub fn wait_blocking(
    wait: &mut GuardWait,
    store: &LimitStore,
    process: &Process,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Waited, StoreError> {
    loop {
        let mut left = match wait.next(store, process.now())? {
            Step::Open => return Ok(Waited::Open(wait.waited())),
            Step::TooLong(closed) => return Ok(Waited::TooLong(closed)),
            Step::Sleep(step) => step,
        };
        while !left.is_zero() {
            if is_cancelled() {
                return Ok(Waited::Cancelled);
            }
            let part = left.min(WANTED_EVERY);
            std::thread::sleep(part);
            left -= part;
        }
    }
}

/// Closes the guard of a provider that refused, for as long as it asks. Gives what is to be
/// recorded of that.
pub fn learn_refusal(
    store: &LimitStore,
    provider: &Name,
    fault: &Fault,
    now: Timestamp,
) -> Result<EventKind, StoreError> {
    let asked = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let why = if asked.is_some() { "the server asks to wait" } else { "a refusal without a time" };
    let wait = asked.unwrap_or(UNNAMED_WAIT).min(CLOSED_MAX);
    let learned = Closed { learned_at: now, until: now.after(wait), why: why.to_owned() };
    let state = store.learn(provider, Some(learned))?;
    Ok(EventKind::GuardUpdated { provider: provider.clone(), until: state.closed.map(|closed| closed.until) })
}

/// The fault of something that a guard keeps from being started.
pub fn limited(provider: &Name, closed: &Closed, now: Timestamp) -> Fault {
    let left = closed.left(now);
    let mut fault = Fault::new(Reason::RateLimited);
    let cause = format!("{provider} is limited for {}: {}", backstop_report::duration(left), closed.why);
    fault.cause = Some(SafeText::new(cause));
    fault.facts.provider = Some(SafeText::new(provider.to_string()));
    fault.facts.retry_after_seconds = Some(left.as_secs_f64());
    fault
}
