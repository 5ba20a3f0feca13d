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
mod freeze;
mod guard;

pub use budget::BudgetScope;
pub use experience::{LOOP_AT, signature_of};
pub use freeze::{FROZEN, UNFREEZE, UNTIL_UNFROZEN};
pub use guard::{GuardWait, Step, Waited, learn_refusal, limited, wait_blocking};

use crate::project::{Project, ProjectError};
use backstop_core::breaker::{Breaker, Pass};
use backstop_core::guard::Closed;
use backstop_core::{Dispatch, EventKind, Experience, Fault, Name, Reason, Record, SafeText};
use backstop_engine::{AdmissionFuture, Attempt, Failed};
use backstop_report::duration;
use backstop_store::LimitStore;
use guard::GuardCache;
use std::sync::Arc;
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
    /// Whose rate limit holds for it, where that is known beforehand.
    pub provider: Option<Name>,
    /// The budget that each attempt takes a unit of.
    pub budget: Option<Name>,
    /// In which scope.
    pub scope: BudgetScope,
    /// What breakers know it by.
    pub operation: String,
    /// What loops are recognised by: the project, and all of the operation.
    pub place: String,
    /// How long its guard is waited for at most.
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
    /// The budget and the scope in which it is spent.
    budget: Option<(Name, String)>,
    on_wait: Option<OnWait>,
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
        Ok(OperationAdmission { shared: Arc::clone(self), limits, budget, on_wait })
    }
}

impl OperationAdmission {
    fn project(&self) -> &Project {
        &self.shared.project
    }

    /// The shared limits, where this operation is bound by one.
    fn bound(&self) -> Option<&Arc<LimitStore>> {
        let is_bound = self.limits.provider.is_some() || self.budget.is_some();
        is_bound.then(|| self.project().limits().ok()).flatten()
    }

    /// Takes a unit, waits for the guard, asks the breaker.
    async fn admit(&self, attempt: &Attempt, record: &dyn Record) -> Result<(), Box<Fault>> {
        self.spend(record)?;
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return Ok(()) };
        let limit = attempt.left.unwrap_or(self.limits.wait_max).min(self.limits.wait_max);
        if let Some(closed) = self.shared.guards.closed(store, provider, self.project().process.now()) {
            if let Some(tell) = &self.on_wait {
                tell(provider, &closed);
            }
            let waited = guard::wait(store, provider, limit, &attempt.cancel, &self.project().process).await;
            self.guard_waited(waited, record)?;
        }
        self.ask_breaker(store, provider)
    }

    /// Whose guard is closed for this operation, and for how long.
    pub fn closed_for(&self) -> Option<(Name, Duration)> {
        let (store, provider) = (self.bound()?, self.limits.provider.as_ref()?);
        let now = self.project().process.now();
        let closed = self.shared.guards.closed(store, provider, now)?;
        Some((provider.clone(), closed.left(now)))
    }

    /// The same for work on a thread of its own, of which `is_cancelled` says whether it is still
    /// wanted. The breaker is not asked: what runs there makes many requests, and says nothing of
    /// one.
    pub fn admit_blocking(
        &self,
        is_cancelled: &dyn Fn() -> bool,
        record: &dyn Record,
    ) -> Result<(), Box<Fault>> {
        self.spend(record)?;
        let (Some(store), Some(provider)) = (self.bound(), &self.limits.provider) else { return Ok(()) };
        let now = self.project().process.now();
        let Some(closed) = self.shared.guards.closed(store, provider, now) else { return Ok(()) };
        if let Some(tell) = &self.on_wait {
            tell(provider, &closed);
        }
        let mut wait = GuardWait::new(provider.clone(), Some(self.limits.wait_max));
        let waited = wait_blocking(&mut wait, store, &self.project().process, is_cancelled);
        self.guard_waited(waited, record)
    }

    fn guard_waited(
        &self,
        waited: Result<Waited, backstop_store::StoreError>,
        record: &dyn Record,
    ) -> Result<(), Box<Fault>> {
        let Some(provider) = &self.limits.provider else { return Ok(()) };
        match waited {
            Ok(Waited::Open(waited)) if waited >= WORTH_RECORDING => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let _ = record.record(vec![EventKind::GuardWaited { provider: provider.clone(), waited_ms }]);
                Ok(())
            }
            Ok(Waited::TooLong(closed)) => {
                Err(Box::new(limited(provider, &closed, self.project().process.now())))
            }
            Ok(Waited::Cancelled) => Err(Box::new(Fault::new(Reason::Interrupted))),
            // A guard that cannot be asked is an open one.
            Ok(Waited::Open(_)) | Err(_) => Ok(()),
        }
    }

    fn ask_breaker(&self, store: &LimitStore, provider: &Name) -> Result<(), Box<Fault>> {
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
        let provider = self.limits.provider.clone().or_else(|| limited.then(|| named(fault)).flatten());
        let Some(provider) = provider.filter(|_| limited || Breaker::counts(fault.reason)) else {
            return Vec::new();
        };
        let Ok(store) = self.project().limits() else { return Vec::new() };
        if limited {
            let learned = learn_refusal(store, &provider, fault, self.project().process.now());
            self.shared.guards.forget(&provider);
            return match learned {
                Ok(event) => vec![event],
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
