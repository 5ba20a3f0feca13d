//! Budgets: a unit for every attempt, spent before the work and given back where none was done.

use super::experience::LOOP_AT;
use super::{Admission, OperationAdmission};
use crate::project::ProjectError;
use backstop_core::{EventKind, Fault, Name, Reason, Record, RunId, SafeText};
use backstop_store::{LimitStore, Per, Spending, StoreError};
use std::sync::atomic::Ordering;

/// What the scopes of a budget are made of.
#[derive(Debug, Clone)]
pub struct BudgetScope {
    /// The outermost run: budgets per run are spent by everything below it.
    pub run: RunId,
    /// The task, where one is named; else the session.
    pub task: Option<String>,
}

/// A budget by its name, and the scope in which it is spent now.
pub(super) fn find(
    store: &LimitStore,
    name: &Name,
    scope: &BudgetScope,
) -> Result<(Name, String), ProjectError> {
    let scope = match super::budgets::existing(store, name)?.per {
        Per::Total => "all".to_owned(),
        Per::Day => store.budget_day(name)?,
        Per::Run => scope.run.to_string(),
        Per::Task => scope.task.clone().unwrap_or_else(|| "none".to_owned()),
    };
    Ok((name.clone(), scope))
}

impl OperationAdmission {
    /// Its budget, and how many units of how many are left in its scope.
    pub fn budget_left(&self) -> Result<Option<(Name, u64, u64)>, ProjectError> {
        let Some((name, scope)) = &self.budget else { return Ok(None) };
        let store = self.project().limits()?;
        let units = super::budgets::existing(store, name)?.units;
        let left = store.remaining(name, scope)?.unwrap_or(units);
        Ok(Some((name.clone(), left, units)))
    }

    /// One unit for every attempt, the first included. A loop is stopped where there is a budget.
    pub fn spend(&self, record: &dyn Record) -> Result<(), Box<Fault>> {
        let (Some(store), Some((name, scope))) = (self.bound(), &self.budget) else { return Ok(()) };
        let note = |kind: EventKind| {
            // Where it cannot be recorded, the next event meets the same trouble.
            let _ = record.record(vec![kind]);
        };
        if let Some(streak) = self.streak().filter(|streak| streak.count >= LOOP_AT) {
            let cause = format!(
                "the same failure {} times in a row, and no file of the project has changed since: {}",
                streak.count, streak.signature
            );
            let next = format!(
                "change what fails; if that is no file of this project, `backstop budget reset {name}` lets it \
                 run again"
            );
            return Err(refused(Reason::StuckDetected, &cause, &next));
        }
        let exhausted = || {
            note(EventKind::BudgetExhausted { budget: name.clone() });
            let next =
                format!("`backstop budget status` shows it, `backstop budget reset {name}` gives it anew");
            let cause = format!("nothing is left of budget {name} ({scope})");
            refused(Reason::BudgetExhausted, &cause, &next)
        };
        match store.spend(name, scope, 1) {
            Ok(Spending::Spent { remaining }) => {
                note(EventKind::BudgetConsumed { budget: name.clone(), units: 1, remaining });
                Ok(())
            }
            Ok(Spending::Exhausted { .. }) => Err(exhausted()),
            Ok(Spending::Unknown) => Ok(()),
            // What cannot be written can still be read: a used-up budget stops the work all the
            // same.
            Err(error) => self.go_on_uncounted(store, name, scope, &error).map_err(|()| exhausted()),
        }
    }

    /// A unit that cannot be stored is counted in this process: refused where nothing is left, else
    /// people are told that others do not see it.
    fn go_on_uncounted(
        &self,
        store: &LimitStore,
        name: &Name,
        scope: &str,
        error: &StoreError,
    ) -> Result<(), ()> {
        let uncounted = self.uncounted.load(Ordering::Relaxed);
        match store.remaining(name, scope) {
            Ok(Some(remaining)) if remaining <= uncounted => return Err(()),
            Ok(Some(_)) => {
                self.uncounted.fetch_add(1, Ordering::Relaxed);
                self.shared.warn(&format!("what is spent of budget {name} is not stored"), error);
            }
            Ok(None) => {}
            Err(error) => {
                self.shared.warn(&format!("budget {name} cannot be read and stops nothing"), &error);
            }
        }
        Ok(())
    }

    /// Gives the unit back: nothing was done.
    pub fn refund(&self, record: &dyn Record) {
        if let (Some(store), Some((name, scope))) = (self.bound(), &self.budget)
            && let Ok(remaining) = store.refund(name, scope, 1)
        {
            let refunded = EventKind::BudgetRefunded { budget: name.clone(), units: 1, remaining };
            let _ = record.record(vec![refunded]);
        }
    }
}

/// Budgets in what is known only afterwards: tokens, money.
impl Admission {
    /// An error where there is no such budget.
    pub fn budget_exists(&self, name: &Name) -> Result<(), ProjectError> {
        let none = BudgetScope { run: RunId::from_random(0, 4), task: None };
        find(self.project.limits()?, name, &none).map(drop)
    }

    /// How much is left; none where that cannot be read.
    pub fn budget_left(&self, name: &Name, scope: &BudgetScope) -> Option<u64> {
        let store = self.project.limits().ok()?;
        let (name, scope) = find(store, name, scope).ok()?;
        store.remaining(&name, &scope).ok().flatten()
    }

    /// Takes what was used, or what is left of it.
    pub fn charge(&self, name: &Name, scope: &BudgetScope, units: u64) {
        let Ok(store) = self.project.limits() else { return };
        let Ok((name, scope)) = find(store, name, scope) else { return };
        if units == 0 {
            return;
        }
        match store.spend(&name, &scope, units) {
            Ok(Spending::Exhausted { remaining }) if remaining > 0 => {
                let _ = store.spend(&name, &scope, remaining);
            }
            Ok(_) => {}
            Err(error) => self.warn(&format!("what is spent of budget {name} is not stored"), &error),
        }
    }
}

fn refused(reason: Reason, cause: &str, next: &str) -> Box<Fault> {
    let mut fault = Fault::new(reason);
    fault.cause = Some(SafeText::new(cause));
    fault.suggested_action = SafeText::new(next);
    Box::new(fault)
}
