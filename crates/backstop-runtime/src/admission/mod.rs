//! What is asked before an attempt and told after it: budget, guard, breaker, loops, learned
//! experience, freeze.
//!
//! [`Admission`] is one for a process: the shared limits and what was read of them lately, usable
//! by many operations at once. [`OperationAdmission`] is what one operation asks: with its
//! provider, its budget and its name. The engine asks it for a command, a call or a request; the
//! host asks it for a node.
//!
//! The order is the engine's and the host's: a failure is recorded first, then it is told here and
//! guards, breakers and budgets change in their own database, then the events that say so are
//! recorded.
//!
//! It must not decide about retries: what stands in the way is a fault like any other, of something
//! that was not started.

mod budget;
mod budgets;
mod experience;
mod fingerprint;
mod freeze;
mod guard;
mod provider;
mod window;

pub use budget::BudgetScope;
pub use budgets::{NewBudget, delete_budget, reset_budget, set_budget};
pub use experience::{LOOP_AT, Streak, signature_of};
pub use freeze::{FROZEN, UNFREEZE, UNTIL_UNFROZEN};
pub use guard::{
    GuardWait, Step, Waited, key_of, learn_refusal, limited, model_refused, sentence_max, wait_blocking,
};
pub use provider::{
    ProviderError, forget_limits, known_limits, known_provider, learn_answer, near_provider, provider_named,
    wait_until_open,
};

use crate::project::{Project, ProjectError};
use backstop_core::breaker::{Breaker, Pass};
use backstop_core::guard::{Closed, GuardKey, closed_by};
use backstop_core::request_window::RequestsLeft;
use backstop_core::{
    Clock, Dispatch, EventKind, Experience, Fault, Hints, Name, Reason, Record, SafeText, Timestamp,
};
use backstop_engine::{AdmissionFuture, Attempt, Failed, GuardFuture};
use backstop_report::duration;
use backstop_store::LimitStore;
use guard::{BELIEVED_FOR, GuardCache, account_key};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use window::Windows;

/// A wait that is shorter is not worth an event.
const WORTH_RECORDING: Duration = Duration::from_millis(100);

/// The limits that this process shares with others.
#[derive(Debug)]
pub struct Admission {
    project: Arc<Project>,
    guards: GuardCache,
    /// Whether people were told that the shared limits cannot be used.
    has_warned: AtomicBool,
    /// Why the shared limits cannot be read, once that was found out. Nobody asks again: each
    /// question would wait for whoever holds them.
    unreadable: OnceLock<String>,
    /// Breakers that had counted nothing, and when that was read.
    quiet_breakers: Mutex<HashMap<(Name, String), Timestamp>>,
    windows: Windows,
    /// When there were no shared limits the last time that somebody looked.
    absent_at: Mutex<Option<Timestamp>>,
    /// The secret that accounts are hashed with, once there is one.
    account_secret: OnceLock<Vec<u8>>,
}

/// Whose request an operation is, where the request itself says so.
#[derive(Clone, Default)]
pub struct RequestIdentity {
    /// The credential that it carries. Only a hash of it is kept.
    pub credential: Option<String>,
    /// The model that it asks for.
    pub model: Option<String>,
}

/// A credential is not shown.
impl std::fmt::Debug for RequestIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestIdentity").field("model", &self.model).finish_non_exhaustive()
    }
}

/// What one operation asks for.
#[derive(Debug, Clone)]
pub struct OperationLimits {
    /// Whose rate limit and breaker hold for it, where somebody said so.
    pub provider: Option<Name>,
    /// Whose client it is, where that can be seen: that rate limit holds for it too.
    pub client: Option<Name>,
    /// The budget that each attempt takes a unit of.
    pub budget: Option<Name>,
    /// In which scope.
    pub scope: BudgetScope,
    /// Its command line, which names the model; empty where there is none.
    pub command: String,
    /// What breakers know it by.
    pub operation: String,
    /// What loops are recognised by: the project, and all of the operation. Empty where loops are
    /// not looked for, so that a success asks the store nothing.
    pub place: String,
    /// How long its guard is waited for at most. One that is closed for longer ends it at once.
    pub wait_max: Duration,
    /// Whether what was learned from earlier failures counts.
    pub learns: bool,
}

/// Who is told that a guard is waited for.
pub type OnWait = Arc<dyn Fn(&Name, &Closed) + Send + Sync>;

/// What one operation asks before an attempt, and tells after it.
pub struct OperationAdmission {
    shared: Arc<Admission>,
    limits: OperationLimits,
    /// How long a limit that only a sentence states closes a guard.
    sentence_max: Duration,
    /// The budget and the scope in which it is spent.
    budget: Option<(Name, String)>,
    /// The failures in a row before this operation began.
    streak: OnceLock<Option<Streak>>,
    on_wait: Option<OnWait>,
    /// Who refused an earlier attempt: its rate limit holds for the next.
    refused_by: Mutex<Option<Name>>,
    /// The guard that let an attempt through to see whether it is still closed.
    probing: Mutex<Option<GuardKey>>,
    /// Attempts whose unit could not be stored.
    uncounted: AtomicU64,
    /// Whose request it is, with the model that is asked for now.
    request: Option<Mutex<RequestIdentity>>,
    /// The key of its guard, with the model that it was made for.
    request_key: Mutex<Option<(Option<String>, GuardKey)>>,
    /// Why no attempt may begin, as the surface has found.
    refused: Mutex<Option<Box<Fault>>>,
    /// The number of the request of this attempt in the provider's window.
    in_window: AtomicU64,
}

impl Admission {
    /// Of this project's user.
    pub fn new(project: Arc<Project>) -> Arc<Self> {
        let (guards, has_warned) = (GuardCache::default(), AtomicBool::new(false));
        Arc::new(Self {
            project,
            guards,
            has_warned,
            unreadable: OnceLock::new(),
            quiet_breakers: Mutex::default(),
            windows: Windows::default(),
            absent_at: Mutex::default(),
            account_secret: OnceLock::new(),
        })
    }

    /// Tells people, once, that the shared limits cannot be used: what they would have stopped goes
    /// on.
    fn warn(&self, what: &str, error: &dyn std::fmt::Display) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let hint = "`backstop doctor` checks the state folder";
            self.project.process.warn(&format!("{what}: {error}"), Some(hint));
        }
    }

    /// The project.
    pub fn project(&self) -> &Arc<Project> {
        &self.project
    }

    /// What an operation asks. A budget that was never set is an error.
    pub fn operation(
        self: &Arc<Self>,
        limits: OperationLimits,
        on_wait: Option<OnWait>,
    ) -> Result<OperationAdmission, ProjectError> {
        let budget = match &limits.budget {
            Some(name) => Some(budget::find(self.project.limits()?, name, &limits.scope)?),
            None => None,
        };
        Ok(OperationAdmission {
            shared: Arc::clone(self),
            sentence_max: limits.wait_max,
            limits,
            budget,
            streak: OnceLock::new(),
            on_wait,
            refused_by: Mutex::default(),
            probing: Mutex::default(),
            uncounted: AtomicU64::new(0),
            request: None,
            request_key: Mutex::default(),
            refused: Mutex::default(),
            in_window: AtomicU64::new(0),
        })
    }
}

impl OperationAdmission {
    /// It is a request that carries its own credential and names its model.
    pub fn of_request(mut self, identity: RequestIdentity) -> Self {
        self.request = Some(Mutex::new(identity));
        self
    }

    /// A limit that only a sentence states closes a guard for so long, instead of for as long as
    /// this operation waits by itself.
    pub fn with_sentence_max(mut self, sentence_max: Duration) -> Self {
        self.sentence_max = sentence_max;
        self
    }

    /// In which scope its budgets are spent.
    pub fn budget_scope(&self) -> BudgetScope {
        self.limits.scope.clone()
    }

    /// Refuses every attempt for this fault, where there is one.
    pub fn refuse(&self, fault: Option<Box<Fault>>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn identity(&self) -> Option<MutexGuard<'_, RequestIdentity>> {
        Some(self.request.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What breakers know it by: the model that is asked for now, or the operation.
    fn breaker_name(&self) -> String {
        let model = self.identity().and_then(|identity| identity.model.clone());
        model.unwrap_or_else(|| self.limits.operation.clone())
    }

    /// The model that it asks for, where that is known.
    pub fn asked_model(&self) -> Option<String> {
        match self.identity() {
            Some(identity) => identity.model.clone(),
            None => backstop_classify::model_of_command(&self.limits.command),
        }
    }

    /// The key of the guard that holds for it.
    fn guard_key(
        &self,
        store: &LimitStore,
        provider: &Name,
        model: Option<String>,
        learns: bool,
    ) -> GuardKey {
        let Some(identity) = self.identity() else {
            return key_of(store, provider, model, &self.project().process, learns);
        };
        // Asked several times for each request, and nearly always for the same model.
        let mut known = self.request_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, key)) = &*known
            && *of == model
            && key.provider == *provider
        {
            return key.clone();
        }
        let secret = self.account_secret(store, learns);
        let key = account_key(provider, model.clone(), secret.zip(identity.credential.as_deref()));
        if secret.is_some() {
            *known = Some((model, key.clone()));
        }
        key
    }

    fn account_secret(&self, store: &LimitStore, learns: bool) -> Option<&[u8]> {
        let known = &self.shared.account_secret;
        if known.get().is_none() {
            let random: Vec<u8> =
                (0..4).flat_map(|_| (self.project().process.random)().to_le_bytes()).collect();
            let read =
                if learns { store.account_secret_or(&random).map(Some) } else { store.account_secret() };
            if let Ok(Some(secret)) = read {
                let _ = known.set(secret);
            }
        }
        known.get().map(Vec::as_slice)
    }

    fn project(&self) -> &Project {
        &self.shared.project
    }

    /// The shared limits, where this operation is bound by one that somebody named.
    fn bound(&self) -> Option<&Arc<LimitStore>> {
        let is_bound = self.limits.provider.is_some() || self.budget.is_some();
        is_bound.then(|| self.store()).flatten()
    }

    /// The shared limits, made where there are none.
    fn store(&self) -> Option<&Arc<LimitStore>> {
        if self.shared.unreadable.get().is_some() {
            self.warn_unreadable();
            return None;
        }
        self.readable(self.project().limits())
    }

    /// The shared limits, if there are any and nothing is known to be wrong with them.
    fn existing_store(&self) -> Option<&Arc<LimitStore>> {
        if self.shared.unreadable.get().is_some() {
            return None;
        }
        let now = self.project().process.now();
        let mut absent_at = self.shared.absent_at.lock().unwrap_or_else(PoisonError::into_inner);
        // Many calls at once do not each ask the file system for what is not there.
        if absent_at.is_some_and(|at| now >= at && now.since(at) < BELIEVED_FOR) {
            return None;
        }
        let store = self.read(self.project().existing_limits()).flatten();
        *absent_at = store.is_none().then_some(now);
        store
    }

    /// What was read of the shared limits, unless they cannot be read.
    fn read<T, E: std::fmt::Display>(&self, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.shared.unreadable.set(error.to_string())).ok()
    }

    /// The same of a limit that holds for this operation: people are told.
    fn readable<T, E: std::fmt::Display>(&self, read: Result<T, E>) -> Option<T> {
        let read = self.read(read);
        if read.is_none() {
            self.warn_unreadable();
        }
        read
    }

    fn warn_unreadable(&self) {
        if let Some(error) = self.shared.unreadable.get() {
            self.shared.warn("the shared limits cannot be read and are not asked", error);
        }
    }

    /// Whose guard it has to wait for, and the limits that know it. A client that was only
    /// recognised makes no database.
    fn guarded(&self) -> Option<(&Arc<LimitStore>, GuardKey)> {
        let (store, provider) = self.guarded_by()?;
        let model = self.asked_model();
        // A request's account is always known, so that its window can be.
        let key = self.guard_key(store, &provider, model, self.request.is_some());
        Some((store, key))
    }

    fn guarded_by(&self) -> Option<(&Arc<LimitStore>, Name)> {
        let refused_by = self.refused_by.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(provider) = self.limits.provider.clone().or(refused_by) {
            return Some((self.store()?, provider));
        }
        let client = self.limits.client.clone()?;
        let store = self.existing_store();
        self.warn_unreadable();
        Some((store?, client))
    }

    /// The wait for a guard that this operation makes before an attempt.
    fn guard_wait(&self, key: &GuardKey, limit: Duration) -> GuardWait {
        GuardWait::new(key.clone(), Some(limit), self.project().process.id).probing()
    }

    /// Notes that an attempt was let through as a probe, if it was.
    fn note_probe(&self, wait: &GuardWait) {
        *self.probing.lock().unwrap_or_else(PoisonError::into_inner) = wait.probed().cloned();
    }

    /// An attempt succeeded: a guard that had let it through as a probe is open. Gives what is to
    /// be recorded of that.
    pub fn probe_succeeded(&self) -> Option<EventKind> {
        let key = self.probing.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let store = self.store()?;
        store.open_guard(&key).ok()?;
        self.shared.guards.forget(&key.provider);
        Some(EventKind::GuardUpdated { provider: key.provider, until: None })
    }

    /// Waits for the guard, for as long as this operation may.
    async fn wait_for_guard(&self, attempt: &Attempt, record: &dyn Record) -> Result<Duration, Box<Fault>> {
        let Some((store, key)) = self.guarded() else { return Ok(Duration::ZERO) };
        let limit = attempt.left.unwrap_or(self.limits.wait_max).min(self.limits.wait_max);
        let now = self.project().process.now();
        let Some(closed) = self.readable(self.shared.guards.closed(store, &key, now)).flatten() else {
            return Ok(Duration::ZERO);
        };
        if let Some(tell) = &self.on_wait
            && closed.left(now) <= limit
        {
            tell(&key.provider, &closed);
        }
        let mut wait = self.guard_wait(&key, limit);
        let waited = guard::wait(&mut wait, store, &attempt.cancel, &self.project().process).await;
        self.note_probe(&wait);
        self.guard_waited(&key.provider, waited, record)
    }

    /// Takes a unit, waits for the guard, asks the breaker. What is refused gives its unit back.
    async fn admit(&self, attempt: &Attempt, record: &dyn Record) -> Result<(), Box<Fault>> {
        // What changed since the last failure can be seen only before the first attempt.
        self.streak();
        if let Some(fault) = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(fault);
        }
        if let (Some(request), Some(model)) = (&self.request, &attempt.fallback) {
            request.lock().unwrap_or_else(PoisonError::into_inner).model = Some(model.clone());
        }
        self.spend(record)?;
        let mut admitted = match self.wait_for_guard(attempt, record).await {
            Ok(_) => self.ask_breaker(),
            Err(fault) => Err(fault),
        };
        if admitted.is_ok() {
            admitted = self.take_window(attempt).await;
        }
        if admitted.is_err() {
            self.refund(record);
        }
        admitted
    }

    /// Whose guard is closed for this operation, and for how long.
    pub fn closed_for(&self) -> Option<(Name, Duration)> {
        let (store, key) = self.guarded()?;
        let now = self.project().process.now();
        let closed = self.readable(self.shared.guards.closed(store, &key, now))??;
        Some((key.provider, closed.left(now)))
    }

    /// The same for work on a thread of its own, of which `is_cancelled` says whether it is still
    /// wanted. The breaker is not asked: what runs there makes many requests, and says nothing of
    /// one.
    pub fn admit_blocking(
        &self,
        is_cancelled: &dyn Fn() -> bool,
        record: &dyn Record,
    ) -> Result<(), Box<Fault>> {
        self.streak();
        self.spend(record)?;
        let Some((store, key)) = self.guarded() else { return Ok(()) };
        let now = self.project().process.now();
        let Some(closed) = self.readable(self.shared.guards.closed(store, &key, now)).flatten() else {
            return Ok(());
        };
        if let Some(tell) = &self.on_wait {
            tell(&key.provider, &closed);
        }
        let mut wait = self.guard_wait(&key, self.limits.wait_max);
        let waited = wait_blocking(&mut wait, store, &self.project().process, is_cancelled);
        self.note_probe(&wait);
        let admitted = self.guard_waited(&key.provider, waited, record).map(|_| ());
        if admitted.is_err() {
            self.refund(record);
        }
        admitted
    }

    fn guard_waited(
        &self,
        provider: &Name,
        waited: Result<Waited, backstop_store::StoreError>,
        record: &dyn Record,
    ) -> Result<Duration, Box<Fault>> {
        match waited {
            Ok(Waited::Open(waited)) if waited >= WORTH_RECORDING => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let _ = record.record(vec![EventKind::GuardWaited { provider: provider.clone(), waited_ms }]);
                Ok(waited)
            }
            Ok(Waited::TooLong(closed)) => {
                Err(Box::new(limited(provider, &closed, self.project().process.now())))
            }
            Ok(Waited::Cancelled) => Err(Box::new(Fault::new(Reason::Interrupted))),
            Ok(Waited::Open(waited)) => Ok(waited),
            // A guard that cannot be asked is an open one, and people are told.
            Err(error) => {
                let _: Option<()> = self.readable(Err(error));
                Ok(Duration::ZERO)
            }
        }
    }

    /// Takes one of the requests that the provider still allows, and waits for the next window
    /// where none is left.
    async fn take_window(&self, attempt: &Attempt) -> Result<(), Box<Fault>> {
        if self.request.is_none() {
            return Ok(());
        }
        let Some((store, key)) = self.guarded() else { return Ok(()) };
        let limit = attempt.left.unwrap_or(self.limits.wait_max).min(self.limits.wait_max);
        let process = &self.project().process;
        let taken = self.shared.windows.take(store, &key, limit, || process.now()).await;
        taken.map(|number| self.in_window.store(number, Ordering::Relaxed)).map_err(|wait| {
            let now = process.now();
            let why = "window requests is used up".to_owned();
            let closed = Closed { learned_at: now, until: now.after(wait), why, in_words: false };
            Box::new(limited(&key.provider, &closed, now))
        })
    }

    /// What the headers of an answer say about limits, whether it succeeded or not. A window that
    /// is used up closes the guard for all: that is no failure, and is known to all by the guard
    /// itself.
    pub fn answered(&self, headers: &[(String, String)], succeeded: bool) {
        let Some((store, key)) = self.guarded() else { return };
        let process = &self.project().process;
        let now = process.now();
        let clock = Clock { now: Some(now), zone: process.zone() };
        let hints = Hints::read(headers, None, &clock);
        let number = self.in_window.load(Ordering::Relaxed);
        self.shared.windows.learn(store, &key, number, RequestsLeft::read(&hints), now);
        if succeeded
            && hints.windows.iter().any(backstop_core::Window::is_closed)
            && let Some(closed) = closed_by(&hints, None, now)
        {
            // Where that cannot be stored, this process knows it all the same.
            let _ = store.learn(&key, Some(closed));
            self.shared.guards.forget(&key.provider);
        }
    }

    /// Whether the headers of an answer say anything that is not known yet.
    pub fn wants_headers<'h>(&self, mut names: impl Iterator<Item = &'h str>) -> bool {
        names.any(|name| name.contains("ratelimit"))
            || self.guarded().is_some_and(|(_, key)| self.shared.windows.is_asking(&key))
    }

    /// Whether it was read lately that the breaker has counted nothing.
    fn breaker_is_quiet(&self, provider: &Name, operation: &str) -> bool {
        let now = self.project().process.now();
        let known = self.shared.quiet_breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.get(&(provider.clone(), operation.to_owned()));
        at.is_some_and(|at| now >= *at && now.since(*at) < BELIEVED_FOR)
    }

    fn note_breaker(&self, provider: &Name, operation: &str, is_quiet: bool) {
        let mut known = self.shared.quiet_breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (provider.clone(), operation.to_owned());
        if is_quiet {
            known.insert(key, self.project().process.now());
        } else {
            known.remove(&key);
        }
    }

    fn ask_breaker(&self) -> Result<(), Box<Fault>> {
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return Ok(()) };
        let operation = &self.breaker_name();
        if self.breaker_is_quiet(provider, operation) {
            return Ok(());
        }
        let Some(Pass::Open(wait)) = self.readable(store.ask_breaker(provider, operation)) else {
            return Ok(());
        };
        let mut fault = Fault::new(Reason::ServiceDown);
        fault.cause = Some(SafeText::new(format!(
            "the breaker of {provider} for `{operation}` is open: too many failures in a row; it is tried again in {}",
            duration(wait)
        )));
        fault.facts.provider = Some(SafeText::new(provider.to_string()));
        fault.suggested_action = SafeText::new(format!("wait, or `backstop guard clear {provider}`"));
        Err(Box::new(fault))
    }

    /// An attempt succeeded. Gives what is to be recorded of that.
    pub fn succeeded(&self) -> Vec<EventKind> {
        let mut events: Vec<EventKind> = self.probe_succeeded().into_iter().collect();
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return events };
        let operation = self.breaker_name();
        // Most of the time nobody has failed, which was read a moment ago.
        if self.breaker_is_quiet(provider, &operation) {
            return events;
        }
        let Ok((before, _)) = store.tell_breaker(provider, &operation, true) else { return events };
        self.note_breaker(provider, &operation, before == Breaker::default());
        if before.open_since.is_some() {
            let operation = SafeText::new(operation);
            events.push(EventKind::BreakerClosed { provider: provider.clone(), operation });
        }
        events
    }

    /// What earlier runs have learned about failures like this one, where that counts.
    pub fn experience(&self, fault: &Fault) -> Option<Experience> {
        self.limits.learns.then(|| experience::of(self.project(), fault)).flatten()
    }

    /// An attempt failed, which is on record: the guard of whoever refused learns it, and the
    /// breaker counts it. Gives what is to be recorded of that.
    pub fn failed(&self, fault: &Fault) -> Vec<EventKind> {
        let limited = fault.reason == Reason::RateLimited;
        let named = limited.then(|| named(fault)).flatten().or_else(|| self.limits.client.clone());
        let provider = self.limits.provider.clone().or(named);
        let Some(provider) = provider.filter(|_| limited || Breaker::counts(fault.reason)) else {
            return Vec::new();
        };
        let Some(store) = self.store() else { return Vec::new() };
        if limited {
            let is_named = self.limits.provider.is_some();
            let process = &self.project().process;
            let model = model_refused(fault, self.asked_model());
            let key = self.guard_key(store, &provider, model, true);
            let learned = learn_refusal(store, &key, fault, is_named, self.sentence_max, process.now());
            self.shared.guards.forget(&provider);
            *self.refused_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(provider);
            return match learned {
                Ok(event) => event.into_iter().collect(),
                Err(error) => {
                    self.shared
                        .warn("the rate limit is not stored: other commands do not know of it", &error);
                    Vec::new()
                }
            };
        }
        if self.limits.provider.is_none() {
            return Vec::new();
        }
        let operation = self.breaker_name();
        self.note_breaker(&provider, &operation, false);
        match store.tell_breaker(&provider, &operation, false) {
            Ok((before, after)) if before.opened != after.opened => vec![EventKind::BreakerOpened {
                provider,
                operation: SafeText::new(operation),
                failures: after.failures,
            }],
            _ => Vec::new(),
        }
    }
}

/// The provider whose client a command line runs.
pub fn client_of(command: &str) -> Option<Name> {
    backstop_classify::provider_of_command(command)?.parse().ok()
}

/// The provider that a fault names.
pub fn named(fault: &Fault) -> Option<Name> {
    fault.facts.provider.as_ref()?.raw().to_ascii_lowercase().parse().ok()
}

impl backstop_engine::Admission for OperationAdmission {
    fn before<'a>(&'a self, attempt: &'a Attempt, record: &'a dyn Record) -> AdmissionFuture<'a> {
        Box::pin(async {
            let admitted = self.admit(attempt, record).await;
            admitted.map_err(|fault| Failed::classified(*fault, Dispatch::NotDispatched))
        })
    }

    fn await_guard<'a>(&'a self, attempt: &'a Attempt, record: &'a dyn Record) -> GuardFuture<'a> {
        // What is refused here is refused again before the attempt, and told then.
        Box::pin(async { self.wait_for_guard(attempt, record).await.unwrap_or_default() })
    }

    fn succeeded(&self) -> Vec<EventKind> {
        OperationAdmission::succeeded(self)
    }

    fn failed(&self, fault: &Fault) -> Vec<EventKind> {
        OperationAdmission::failed(self, fault)
    }

    fn experience(&self, fault: &Fault) -> Option<Experience> {
        OperationAdmission::experience(self, fault)
    }
}

impl std::fmt::Debug for OperationAdmission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationAdmission").field("limits", &self.limits).finish_non_exhaustive()
    }
}
