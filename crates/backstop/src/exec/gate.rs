//! What is asked before an attempt and told after it: budget, guard, breaker.
//!
//! It must not decide about retries: what stands in the way is a fault like any other, of a command that was not started.

use super::journal::ExecJournal;
use crate::cli::Exec;
use crate::context::Context;
use crate::error::CliError;
use crate::guard::{Waited, await_open};
use crate::limits;
use backstop_core::breaker::{Breaker, Pass};
use backstop_core::{Dispatch, EventKind, Fault, Name, Reason, Record, SafeText};
use backstop_engine::{Cancel, Failed};
use backstop_report::duration;
use backstop_store::{GuardState, LimitStore, Per, Spending};
use std::sync::Arc;
use std::time::Duration;

/// The same failure so often in a row, with no success between, is a loop.
const LOOP_AT: u32 = 3;

/// What is asked before each attempt.
pub(super) struct Gate {
    store: Option<Arc<LimitStore>>,
    provider: Option<Name>,
    /// The budget and the scope in which it is spent.
    budget: Option<(Name, String)>,
    /// What breakers and loops know this command by.
    operation: String,
    /// The folder and the command: what goes round in circles.
    place: String,
    wait_max: Duration,
}

impl Gate {
    pub(super) fn open(
        args: &Exec,
        context: &Context,
        command: &str,
        scope: &dyn Fn(Per) -> String,
        wait_max: Duration,
    ) -> Result<Self, CliError> {
        let provider: Option<Name> = args.provider.as_deref().map(str::parse).transpose()?;
        let name: Option<Name> = args.budget.as_deref().map(str::parse).transpose()?;
        let wanted = provider.is_some() || name.is_some() || args.cache.is_some();
        let store = if wanted { Some(Arc::new(limits::open(context)?)) } else { None };
        let budget = match (name, &store) {
            (Some(name), Some(store)) => {
                let Some(found) = store.budget(&name)? else {
                    let known = store.budget_states()?.iter().map(|s| s.budget.name.to_string()).collect();
                    return Err(CliError::NoBudget { given: name.to_string(), known });
                };
                Some((name, scope(found.per)))
            }
            _ => None,
        };
        let words: Vec<&str> = command.split(' ').take(2).collect();
        let place = format!("{}: {command}", context.project.display());
        Ok(Self { store, provider, budget, operation: words.join(" "), place, wait_max })
    }

    pub(super) fn store(&self) -> Option<&Arc<LimitStore>> {
        self.store.as_ref()
    }

    /// Takes a unit, waits for the guard, asks the breaker. What stands in the way comes back as a failure.
    pub(super) async fn before(
        &self,
        left: Option<Duration>,
        cancel: &Cancel,
        journal: &ExecJournal,
    ) -> Result<(), Failed> {
        let Some(store) = &self.store else { return Ok(()) };
        self.spend(store, journal)?;
        let Some(provider) = &self.provider else { return Ok(()) };
        let limit = left.unwrap_or(self.wait_max).min(self.wait_max);
        if let Ok(Some(GuardState { closed: Some(closed), .. })) = store.guard(provider) {
            journal.waiting(provider, &closed);
        }
        let waiting = {
            let (store, provider, cancel) = (Arc::clone(store), provider.clone(), cancel.clone());
            tokio::task::spawn_blocking(move || {
                let mut sleep = |step| limits::sleep_while(step, &|| !cancel.is_cancelled());
                await_open(&store, &provider, Some(limit), &mut sleep)
            })
        };
        match waiting.await {
            Ok(Ok(Waited::Open(waited))) if waited >= limits::LOOK_EVERY => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let _ =
                    journal.record(vec![EventKind::GuardWaited { provider: provider.clone(), waited_ms }]);
            }
            Ok(Ok(Waited::TooLong(closed))) => return Err(not_started(limits::limited(provider, &closed))),
            Ok(Ok(Waited::Cancelled)) => return Err(not_started(Fault::new(Reason::Interrupted))),
            // A guard that cannot be asked is an open one.
            _ => {}
        }
        match store.ask_breaker(provider, &self.operation) {
            Ok(Pass::Open(wait)) => {
                let mut fault = Fault::new(Reason::ServiceDown);
                let what = format!(
                    "the breaker of {provider} for `{}` is open: too many failures in a row; it is tried again in {}",
                    self.operation,
                    duration(wait)
                );
                fault.cause = Some(SafeText::new(what));
                fault.facts.provider = Some(SafeText::new(provider.to_string()));
                fault.suggested_action = SafeText::new(format!("wait, or `backstop guard clear {provider}`"));
                Err(not_started(fault))
            }
            _ => Ok(()),
        }
    }

    /// One unit for every attempt, the first included. A loop is stopped where there is a budget.
    fn spend(&self, store: &LimitStore, journal: &ExecJournal) -> Result<(), Failed> {
        let Some((name, scope)) = &self.budget else { return Ok(()) };
        if let Ok(Some((signature, count))) = store.streak(&self.place)
            && count >= LOOP_AT
        {
            let cause =
                format!("the same failure {count} times in a row, with no success between: {signature}");
            let next = format!("change something, then `backstop budget reset {name}`");
            let _ = journal.record(vec![EventKind::BudgetExhausted { budget: name.clone() }]);
            return Err(exhausted(&cause, &next));
        }
        match store.spend(name, scope, 1) {
            Ok(Spending::Spent { remaining }) => {
                let _ = journal.record(vec![EventKind::BudgetConsumed {
                    budget: name.clone(),
                    units: 1,
                    remaining,
                }]);
                Ok(())
            }
            Ok(Spending::Exhausted { .. }) => {
                let _ = journal.record(vec![EventKind::BudgetExhausted { budget: name.clone() }]);
                let next = format!(
                    "`backstop budget status` shows it, `backstop budget reset {name}` gives it anew"
                );
                Err(exhausted(&format!("nothing is left of budget {name} ({scope})"), &next))
            }
            // A budget that cannot be asked does not stop the work.
            Ok(Spending::Unknown) | Err(_) => Ok(()),
        }
    }

    /// Gives the unit back: nothing was done.
    pub(super) fn refund(&self, journal: &ExecJournal) {
        if let (Some(store), Some((name, scope))) = (&self.store, &self.budget)
            && let Ok(remaining) = store.refund(name, scope, 1)
        {
            let _ =
                journal.record(vec![EventKind::BudgetRefunded { budget: name.clone(), units: 1, remaining }]);
        }
    }

    /// Takes a unit for a result that is looked up: it is given back where there is one.
    pub(super) fn take(&self, journal: &ExecJournal) -> Result<(), Failed> {
        match &self.store {
            Some(store) => self.spend(store, journal),
            None => Ok(()),
        }
    }

    /// An attempt succeeded.
    pub(super) fn succeeded(&self) {
        if let (Some(store), Some(provider)) = (&self.store, &self.provider) {
            let _ = store.tell_breaker(provider, &self.operation, true);
        }
    }

    /// An attempt failed: the guard of whoever refused learns it, and the breaker counts it.
    pub(super) fn failed(&self, fault: &Fault, context: &Context, journal: &ExecJournal) {
        let named =
            || fault.facts.provider.as_ref().and_then(|p| p.raw().to_ascii_lowercase().parse::<Name>().ok());
        let limited = fault.reason == Reason::RateLimited;
        let provider = self.provider.clone().or_else(|| limited.then(named).flatten());
        let Some(provider) = provider.filter(|_| limited || Breaker::counts(fault.reason)) else { return };
        let store = match &self.store {
            Some(store) => Arc::clone(store),
            None => match limits::open(context) {
                Ok(store) => Arc::new(store),
                Err(_) => return,
            },
        };
        if limited {
            let learned = limits::learn_refusal(&store, &provider, fault);
            if let Ok(state) = learned {
                let until = state.closed.map(|closed| closed.until);
                let _ = journal.record(vec![EventKind::GuardUpdated { provider, until }]);
            }
        } else if self.provider.is_some() {
            let _ = store.tell_breaker(&provider, &self.operation, false);
        }
    }

    /// The run has ended: what was learned from it. Gives how often in a row it has failed the same way, where that is a
    /// loop.
    pub(super) fn learn(
        &self,
        context: &Context,
        faults: &[Fault],
        succeeded: bool,
        attempts: u32,
    ) -> Option<u32> {
        if faults.is_empty() {
            if let Some(store) = &self.store {
                let _ = store.end_streak(&self.place);
            } else if let Ok(folder) = context.folder()
                && let Ok(Some(store)) = LimitStore::open_existing(&folder)
            {
                let _ = store.end_streak(&self.place);
            }
            return None;
        }
        let store = match &self.store {
            Some(store) => Arc::clone(store),
            None => Arc::new(limits::open(context).ok()?),
        };
        for (index, fault) in faults.iter().enumerate() {
            let retried = u64::from((index as u32) + 1 < attempts);
            let cured = u64::from(succeeded && index + 1 == faults.len());
            let _ = store.note_experience(&signature_of(fault), fault.reason, 1, retried, cured);
        }
        if succeeded {
            let _ = store.end_streak(&self.place);
            return None;
        }
        let last =
            faults.last().filter(|f| !matches!(f.reason, Reason::BudgetExhausted | Reason::Interrupted))?;
        store.note_streak(&self.place, &signature_of(last)).ok().filter(|count| *count >= LOOP_AT)
    }
}

/// What a fault is known by: its message with the variable parts taken out.
pub(super) fn signature_of(fault: &Fault) -> String {
    let text = match &fault.cause {
        Some(cause) => cause.raw().to_owned(),
        None => fault.evidence.first().map(|e| e.text.raw().to_owned()).unwrap_or_default(),
    };
    format!("{}: {}", fault.reason, backstop_core::signature(&text))
}

fn exhausted(cause: &str, next: &str) -> Failed {
    let mut fault = Fault::new(Reason::BudgetExhausted);
    fault.cause = Some(SafeText::new(cause));
    fault.suggested_action = SafeText::new(next);
    not_started(fault)
}

fn not_started(fault: Fault) -> Failed {
    Failed::classified(fault, Dispatch::NotDispatched)
}
