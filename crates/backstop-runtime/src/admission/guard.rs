//! Waiting for a provider's guard, and teaching it.
//!
//! A guard knows the end that the provider stated. A caller that would have to wait longer than it
//! may gets its answer at once, with that end. What only a sentence said holds for at most as long
//! as whoever read it waits, and is probed now and then: one caller is let through, and if it is
//! served the guard is open for all.

use crate::process::Process;
use backstop_config::{Config, EXEC_WAIT_MAX_WATCHED};
use backstop_core::guard::{CLOSED_MAX, Closed, GuardKey, UNNAMED_WAIT, wait as until_open};
use backstop_core::{EventKind, Fault, Name, Reason, SafeText, Timestamp};
use backstop_engine::Cancel;
use backstop_store::{LimitStore, ProcessId, StoreError};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often a waiter looks whether the guard was opened by somebody or closed further.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a waiter on a thread looks whether it is still wanted.
const WANTED_EVERY: Duration = Duration::from_millis(100);
/// How long what was read of a guard is believed.
pub(super) const BELIEVED_FOR: Duration = Duration::from_millis(100);

/// What was read of guards lately, so that many calls at once do not each ask the store.
#[derive(Debug, Default)]
pub(super) struct GuardCache(Mutex<HashMap<GuardKey, (Timestamp, Option<Closed>)>>);

impl GuardCache {
    /// Until when a guard is closed.
    pub(super) fn closed(
        &self,
        store: &LimitStore,
        key: &GuardKey,
        now: Timestamp,
    ) -> Result<Option<Closed>, StoreError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, closed)) = known.get(key)
            && now >= *at
            && now.since(*at) < BELIEVED_FOR
        {
            return Ok(closed.clone().filter(|closed| closed.holds(now)));
        }
        let closed = store.guard(key)?.and_then(|guard| guard.closed);
        known.insert(key.clone(), (now, closed.clone()));
        Ok(closed)
    }

    /// It has changed.
    pub(super) fn forget(&self, provider: &Name) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|key, _| key.provider != *provider);
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
    key: GuardKey,
    limit: Option<Duration>,
    waiter: ProcessId,
    /// Whether it may be let through to see whether the guard is still closed, and which one it
    /// was.
    probes: bool,
    probed: Option<GuardKey>,
    /// The place in a guard's queue, once one was taken.
    place: Option<(GuardKey, u64)>,
    /// What is waited for, and for how long still.
    current: Option<(Closed, Duration)>,
    waited: Duration,
}

impl GuardWait {
    /// A wait of this process for at most `limit`.
    pub fn new(key: GuardKey, limit: Option<Duration>, waiter: ProcessId) -> Self {
        let (probes, probed, place, current) = (false, None, None, None);
        Self { key, limit, waiter, probes, probed, place, current, waited: Duration::ZERO }
    }

    /// It may be let through as a probe, because somebody looks at what comes of it.
    pub(super) fn probing(mut self) -> Self {
        self.probes = true;
        self
    }

    /// The guard that it was let through by as a probe, if it was.
    pub(super) fn probed(&self) -> Option<&GuardKey> {
        self.probed.as_ref()
    }

    /// It waits no longer.
    pub fn leave(&mut self, store: &LimitStore) {
        if let Some((key, place)) = self.place.take() {
            // Where that cannot be stored, it counts until this process has ended.
            let _ = store.leave_queue(&key, place, &self.waiter);
        }
    }

    /// How long was slept so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// What to do next.
    pub fn next(&mut self, store: &LimitStore, now: Timestamp) -> Result<Step, StoreError> {
        let step = self.step(store, now);
        if !matches!(step, Ok(Step::Sleep(_))) {
            self.leave(store);
        }
        step
    }

    fn step(&mut self, store: &LimitStore, now: Timestamp) -> Result<Step, StoreError> {
        let guard = store.guard(&self.key)?.and_then(|guard| Some((guard.closed?, guard.key)));
        let (closed, key) = guard.unzip();
        if let (Some(closed), Some(key)) = (&closed, &key) {
            // A closed guard is obeyed even where nothing can be written.
            if self.probes && closed.in_words && store.probe_guard(key).unwrap_or(false) {
                self.probed = Some(key.clone());
                return Ok(Step::Open);
            }
            if self.limit.is_some_and(|limit| self.waited + closed.left(now) > limit) {
                return Ok(Step::TooLong(closed.clone()));
            }
        }
        let left = match (closed, &self.current) {
            // It was opened by the passing of time: a little longer, so that not all wake at once.
            // By somebody: at once.
            (None, Some((was, left))) if !was.holds(now) => *left,
            (None, _) => return Ok(Step::Open),
            (Some(closed), Some((was, left))) if closed == *was && !left.is_zero() => *left,
            (Some(closed), _) => {
                let key = key.unwrap_or_else(|| self.key.clone());
                if self.place.is_none() {
                    self.place = store.queue(&key, &self.waiter).ok().map(|place| (key, place));
                }
                let place = self.place.as_ref().map_or(0, |(_, place)| *place);
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
    wait: &mut GuardWait,
    store: &LimitStore,
    cancel: &Cancel,
    process: &Process,
) -> Result<Waited, StoreError> {
    loop {
        match wait.next(store, process.now())? {
            Step::Open => return Ok(Waited::Open(wait.waited())),
            Step::TooLong(closed) => return Ok(Waited::TooLong(closed)),
            Step::Sleep(step) => {
                if tokio::time::timeout(step, cancel.cancelled()).await.is_ok() {
                    wait.leave(store);
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
                wait.leave(store);
                return Ok(Waited::Cancelled);
            }
            let part = left.min(WANTED_EVERY);
            process.sleep(part);
            left -= part;
        }
    }
}

/// The model that a refusal closes the guard for: the one whose limit it is known to be, else what
/// its words say of the model that was asked for.
pub fn model_refused(fault: &Fault, asked: Option<String>) -> Option<String> {
    let known = fault.facts.model.as_ref().map(|model| model.raw().to_owned());
    let said = fault.cause.as_ref().map_or("", SafeText::raw);
    known.or_else(|| backstop_classify::limited_model_of(said, asked))
}

/// The key of the guard of a provider: the account of the credential in the environment, and a
/// model: the one that a command asks for, or the one that a refusal is about. Only `learns` makes
/// the secret that accounts are hashed with; without one, no guard knows any account.
pub fn key_of(
    store: &LimitStore,
    provider: &Name,
    model: Option<String>,
    process: &Process,
    learns: bool,
) -> GuardKey {
    let key = account_key(provider, model, None);
    let variables = backstop_classify::credential_variables(provider.as_str());
    let is_set = |value: &String| !value.is_empty();
    let Some(credential) =
        variables.into_iter().find_map(|variable| (process.variable)(variable).filter(is_set))
    else {
        return key;
    };
    let random: Vec<u8> =
        if learns { (0..4).flat_map(|_| (process.random)().to_le_bytes()).collect() } else { Vec::new() };
    let secret = if learns { store.account_secret_or(&random).map(Some) } else { store.account_secret() };
    match secret {
        Ok(Some(secret)) => key.with_credential(&secret, &credential),
        _ => key,
    }
}

/// The key of an account of a provider: of this credential, hashed with a secret of this machine.
pub(super) fn account_key(
    provider: &Name,
    model: Option<String>,
    account: Option<(&[u8], &str)>,
) -> GuardKey {
    let key = GuardKey::unknown_account(provider.clone());
    let key = model.map_or_else(|| key.clone(), |model| key.clone().with_model(&model));
    match account {
        Some((secret, credential)) => key.with_credential(secret, credential),
        None => key,
    }
}

/// How long a sentence closes a guard where nobody waits for it, as after a hook's report or `guard
/// ingest`: as long as a command on a terminal waits.
pub fn sentence_max(config: &Config) -> Duration {
    config.exec().wait_max.unwrap_or(EXEC_WAIT_MAX_WATCHED)
}

/// Closes the guard of a provider that refused, until the end that it states; a sentence closes it
/// for at most `sentence_max`. Returns the event to record; `None` where nothing was learned: a
/// sentence counts only from a client of that provider (`is_named`: somebody said which provider is
/// behind the operation), and a limit whose end has come closes nothing.
pub fn learn_refusal(
    store: &LimitStore,
    key: &GuardKey,
    fault: &Fault,
    is_named: bool,
    sentence_max: Duration,
    now: Timestamp,
) -> Result<Option<EventKind>, StoreError> {
    let facts = &fault.facts;
    let asked = facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let is_field = asked.is_some() && !facts.wait_in_words;
    let is_over = asked.is_none() && facts.resets_at.is_some_and(|at| at <= now);
    if is_over || !(is_named || facts.from_client || is_field) {
        return Ok(None);
    }
    let why = if asked.is_some() { "the server asks to wait" } else { "a refusal without a time" };
    let wait = asked.unwrap_or(UNNAMED_WAIT).min(CLOSED_MAX);
    let learned =
        Closed { learned_at: now, until: now.after(wait), why: why.to_owned(), in_words: !is_field };
    let learned = learned.bounded(sentence_max);
    if !learned.holds(now) {
        return Ok(None);
    }
    let state = store.learn(key, Some(learned))?;
    let until = state.closed.map(|closed| closed.until);
    Ok(Some(EventKind::GuardUpdated { provider: key.provider.clone(), until }))
}

/// The fault of something that a guard keeps from being started.
pub fn limited(provider: &Name, closed: &Closed, now: Timestamp) -> Fault {
    let left = closed.left(now);
    let mut fault = Fault::new(Reason::RateLimited);
    let cause = format!("{provider} is limited for {}: {}", backstop_report::duration(left), closed.why);
    fault.cause = Some(SafeText::new(cause));
    fault.facts.provider = Some(SafeText::new(provider.to_string()));
    fault.facts.retry_after_seconds = Some(left.as_secs_f64());
    fault.facts.resets_at = Some(now.after(left));
    fault
}
