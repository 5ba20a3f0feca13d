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
mod experience;
mod fingerprint;
mod freeze;
mod guard;

pub use budget::BudgetScope;
pub use experience::{LOOP_AT, Streak, signature_of};
pub use freeze::{FROZEN, UNFREEZE, UNTIL_UNFROZEN};
pub use guard::{
    GuardWait, Step, Teaching, Waited, key_of, learn_refusal, limited, model_refused, wait_blocking,
};

use crate::project::{Project, ProjectError};
use backstop_core::breaker::{Breaker, Pass};
use backstop_core::guard::{Closed, GuardKey};
use backstop_core::{Dispatch, EventKind, Experience, Fault, Name, Reason, Record, SafeText};
use backstop_engine::{AdmissionFuture, Attempt, Failed, GuardFuture};
use backstop_report::duration;
use backstop_store::LimitStore;
use guard::GuardCache;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A wait that is shorter is not worth an event.
const WORTH_RECORDING: Duration = Duration::from_millis(100);

/// The limits that this process shares with others.
#[derive(Debug)]
pub struct Admission {
    project: Arc<Project>,
    guards: GuardCache,
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
    /// What loops are recognised by: the project, and all of the operation. Empty where loops are not
    /// looked for, so that a success asks the store nothing.
    pub place: String,
    /// How long its guard is waited for at most.
    pub wait_max: Duration,
    /// How long a sentence, and no header or field, closes a guard at most.
    pub words_max: Duration,
    /// Whether what was learned from earlier failures counts.
    pub learns: bool,
}

/// Who is told that a guard is waited for.
pub type OnWait = Arc<dyn Fn(&Name, &Closed) + Send + Sync>;

/// What one operation asks before an attempt, and tells after it.
pub struct OperationAdmission {
    shared: Arc<Admission>,
    limits: OperationLimits,
    /// The budget and the scope in which it is spent.
    budget: Option<(Name, String)>,
    /// The failures in a row before this operation began.
    streak: OnceLock<Option<Streak>>,
    on_wait: Option<OnWait>,
    /// Who refused an earlier attempt: its rate limit holds for the next.
    refused_by: Mutex<Option<Name>>,
}

impl Admission {
    /// Of this project's user.
    pub fn new(project: Arc<Project>) -> Arc<Self> {
        Arc::new(Self { project, guards: GuardCache::default() })
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
            Some(name) => Some(budget::find(self.project.limits()?, name, &limits.scope, &self.project)?),
            None => None,
        };
        let (streak, refused_by) = (OnceLock::new(), Mutex::default());
        Ok(OperationAdmission { shared: Arc::clone(self), limits, budget, streak, on_wait, refused_by })
    }
}

impl OperationAdmission {
    fn project(&self) -> &Project {
        &self.shared.project
    }

    /// The shared limits, where this operation is bound by one that somebody named.
    fn bound(&self) -> Option<&Arc<LimitStore>> {
        let is_bound = self.limits.provider.is_some() || self.budget.is_some();
        is_bound.then(|| self.project().limits().ok()).flatten()
    }

    /// Whose guard it has to wait for, and the limits that know it. A client that was only recognised
    /// makes no database.
    fn guarded(&self) -> Option<(&Arc<LimitStore>, GuardKey)> {
        let (store, provider) = self.guarded_by()?;
        let model = backstop_classify::model_of_command(&self.limits.command);
        let key = key_of(store, &provider, model, &self.project().process, false);
        Some((store, key))
    }

    fn guarded_by(&self) -> Option<(&Arc<LimitStore>, Name)> {
        let refused_by = self.refused_by.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(provider) = self.limits.provider.clone().or(refused_by) {
            return Some((self.project().limits().ok()?, provider));
        }
        let client = self.limits.client.clone()?;
        Some((self.project().existing_limits().ok()??, client))
    }

    /// Waits for the guard, for as long as this operation may.
    async fn wait_for_guard(&self, attempt: &Attempt, record: &dyn Record) -> Result<Duration, Box<Fault>> {
        let Some((store, key)) = self.guarded() else { return Ok(Duration::ZERO) };
        let limit = attempt.left.unwrap_or(self.limits.wait_max).min(self.limits.wait_max);
        let now = self.project().process.now();
        let Some(closed) = self.shared.guards.closed(store, &key, now) else {
            return Ok(Duration::ZERO);
        };
        if let Some(tell) = &self.on_wait
            && closed.left(now) <= limit
        {
            tell(&key.provider, &closed);
        }
        let waited = guard::wait(store, &key, limit, &attempt.cancel, &self.project().process).await;
        self.guard_waited(&key.provider, waited, record)
    }

    /// Takes a unit, waits for the guard, asks the breaker. What is refused gives its unit back.
    async fn admit(&self, attempt: &Attempt, record: &dyn Record) -> Result<(), Box<Fault>> {
        // What changed since the last failure can be seen only before the first attempt.
        self.streak();
        self.spend(record)?;
        let admitted = match self.wait_for_guard(attempt, record).await {
            Ok(_) => self.ask_breaker(),
            Err(fault) => Err(fault),
        };
        if admitted.is_err() {
            self.refund(record);
        }
        admitted
    }

    /// Whose guard is closed for this operation, and for how long.
    pub fn closed_for(&self) -> Option<(Name, Duration)> {
        let (store, key) = self.guarded()?;
        let now = self.project().process.now();
        let closed = self.shared.guards.closed(store, &key, now)?;
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
        let Some(closed) = self.shared.guards.closed(store, &key, now) else { return Ok(()) };
        if let Some(tell) = &self.on_wait {
            tell(&key.provider, &closed);
        }
        let mut wait = GuardWait::new(key.clone(), Some(self.limits.wait_max));
        let waited = wait_blocking(&mut wait, store, &self.project().process, is_cancelled);
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
            // A guard that cannot be asked is an open one.
            Ok(Waited::Open(waited)) => Ok(waited),
            Err(_) => Ok(Duration::ZERO),
        }
    }

    fn ask_breaker(&self) -> Result<(), Box<Fault>> {
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return Ok(()) };
        let operation = &self.limits.operation;
        let Ok(Pass::Open(wait)) = store.ask_breaker(provider, operation) else { return Ok(()) };
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
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return Vec::new() };
        match store.tell_breaker(provider, &self.limits.operation, true) {
            Ok((before, _)) if before.open_since.is_some() => vec![EventKind::BreakerClosed {
                provider: provider.clone(),
                operation: SafeText::new(self.limits.operation.clone()),
            }],
            _ => Vec::new(),
        }
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
        let Ok(store) = self.project().limits() else { return Vec::new() };
        if limited {
            let teaching =
                Teaching { is_named: self.limits.provider.is_some(), words_max: self.limits.words_max };
            let process = &self.project().process;
            let model = model_refused(fault, Some(&self.limits.command));
            let key = key_of(store, &provider, model, process, true);
            let learned = learn_refusal(store, &key, fault, teaching, process.now());
            self.shared.guards.forget(&provider);
            *self.refused_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(provider);
            return match learned {
                Ok(event) => event.into_iter().collect(),
                Err(_) => Vec::new(),
            };
        }
        if self.limits.provider.is_none() {
            return Vec::new();
        }
        match store.tell_breaker(&provider, &self.limits.operation, false) {
            Ok((before, after)) if before.opened != after.opened => vec![EventKind::BreakerOpened {
                provider,
                operation: SafeText::new(self.limits.operation.clone()),
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
        self.limits.learns.then(|| experience::of(self.project(), fault)).flatten()
    }
}

impl std::fmt::Debug for OperationAdmission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationAdmission").field("limits", &self.limits).finish_non_exhaustive()
    }
}
