//! Budgets in requests, tokens and money. A request takes its unit before it is sent; tokens and
//! money are known only afterwards, so that a request is refused when nothing is left of them.

use backstop_core::{Fault, Name, Reason, SafeText, Usage};
use backstop_runtime::ProjectError;
use backstop_runtime::admission::{Admission, BudgetScope};
use backstop_runtime::operation::OperationRun;
use std::sync::{Arc, Mutex, PoisonError};

/// A cent in millionths of a dollar.
const CENT: u64 = 10_000;

/// What may be spent, each by the name of a budget.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    /// A unit for every attempt.
    pub requests: Option<Name>,
    /// A unit for every token.
    pub tokens: Option<Name>,
    /// A unit for every US cent.
    pub cents: Option<Name>,
}

/// What was spent.
pub(super) struct Spending {
    admission: Arc<Admission>,
    budgets: Budgets,
    /// Money that is not a whole cent yet, in millionths of a dollar.
    rest: Mutex<u64>,
}

impl Spending {
    pub(super) fn new(admission: Arc<Admission>, budgets: Budgets) -> Result<Self, ProjectError> {
        for name in [&budgets.requests, &budgets.tokens, &budgets.cents].into_iter().flatten() {
            admission.budget_exists(name)?;
        }
        Ok(Self { admission, budgets, rest: Mutex::default() })
    }

    pub(super) fn requests(&self) -> Option<Name> {
        self.budgets.requests.clone()
    }

    /// Refuses where nothing is left of what is counted afterwards.
    pub(super) fn check(&self, scope: &BudgetScope) -> Result<(), Box<Fault>> {
        for name in [&self.budgets.tokens, &self.budgets.cents].into_iter().flatten() {
            if self.admission.budget_left(name, scope) == Some(0) {
                let mut fault = Fault::new(Reason::BudgetExhausted);
                fault.cause = Some(SafeText::new(format!("nothing is left of budget {name}")));
                fault.suggested_action = SafeText::new(format!(
                    "`backstop budget status` shows it, `backstop budget reset {name}` gives it anew"
                ));
                return Err(Box::new(fault));
            }
        }
        Ok(())
    }

    /// Takes what a request has used.
    pub(super) fn charge(&self, run: &OperationRun, usage: Usage) {
        let scope = run.admission.budget_scope();
        if let Some(name) = &self.budgets.tokens {
            self.admission.charge(name, &scope, usage.tokens());
        }
        if let (Some(name), Some(cost)) = (&self.budgets.cents, usage.cost_usd) {
            let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A cost is a small sum.
            let millionths = *rest + (cost * 1e6).max(0.0).round() as u64;
            *rest = millionths % CENT;
            drop(rest);
            self.admission.charge(name, &scope, millionths / CENT);
        }
    }
}
