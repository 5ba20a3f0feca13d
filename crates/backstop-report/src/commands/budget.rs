//! Budgets: what is left, and what was changed.

use crate::{JSON_SCHEMA, Style, View, table};
use backstop_core::budget::{Budget, BudgetState, UNIT};
use backstop_core::{Name, SafeText};
use serde_json::{Value, json};

/// What is left of every budget, in each of its scopes.
#[derive(Debug, Clone)]
pub struct BudgetList(pub Vec<BudgetState>);

impl View for BudgetList {
    fn text(&self, _: Style) -> String {
        if self.0.is_empty() {
            return "no budget is set; `backstop budget set NAME UNITS --per day` sets one\n".to_owned();
        }
        let row = |state: &BudgetState| {
            let scope = SafeText::new(state.scope.clone()).line(40);
            vec![
                state.budget.name.to_string(),
                format!("{} of {}", state.remaining(), state.budget.units),
                SafeText::new(state.budget.unit.clone()).line(20),
                state.budget.per.words().to_owned(),
                if scope.is_empty() { "-".to_owned() } else { scope },
                state.refused.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = self.0.iter().map(row).collect();
        table(&["BUDGET", "LEFT", "UNIT", "FOR", "SCOPE", "REFUSED"], &rows)
    }

    fn json(&self) -> Value {
        let row = |state: &BudgetState| {
            json!({
                "budget": state.budget.name, "units": state.budget.units,
                "per": state.budget.per.name(), "unit": state.budget.unit, "scope": state.scope,
                "spent": state.spent, "remaining": state.remaining(), "refused": state.refused,
                "updated_at": state.updated_at,
            })
        };
        let rows: Vec<Value> = self.0.iter().map(row).collect();
        json!({ "schema": JSON_SCHEMA, "budgets": rows })
    }
}

/// What was done to a budget.
#[derive(Debug, Clone)]
pub enum BudgetChange {
    /// It was made or changed.
    Set {
        /// As it is now.
        budget: Budget,
        /// As it was, if it was there.
        before: Option<Budget>,
    },
    /// It was removed, with what was spent of it.
    Deleted(Budget),
    /// What was spent of it is zero again.
    Reset {
        /// The budget.
        name: Name,
        /// The number of scopes that were set back.
        scopes: usize,
        /// The number of loops that may go on.
        loops: usize,
    },
}

/// `50 iterations per day`.
fn sized(budget: &Budget) -> String {
    let unit = SafeText::new(budget.unit.clone()).line(20);
    format!("{} {unit} {}", budget.units, budget.per.words())
}

/// The command that makes a deleted budget again.
fn undo(budget: &Budget) -> String {
    let unit = if budget.unit == UNIT { String::new() } else { format!(" --unit {}", budget.unit) };
    format!("backstop budget set {} {} --per {}{unit}", budget.name, budget.units, budget.per.name())
}

impl View for BudgetChange {
    fn text(&self, _: Style) -> String {
        match self {
            Self::Set { budget, before } => {
                let changed = before.as_ref().filter(|before| *before != budget);
                let was = changed.map(|before| format!(" (was {})", sized(before))).unwrap_or_default();
                format!(
                    "budget {}: {}{was}; `backstop exec --budget {} -- COMMAND` spends it\n",
                    budget.name,
                    sized(budget),
                    budget.name
                )
            }
            Self::Deleted(budget) => {
                let undo = undo(budget);
                format!("budget {} is deleted ({}); `{undo}` makes it again\n", budget.name, sized(budget))
            }
            Self::Reset { name, .. } => format!("budget {name} is whole again\n"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Set { budget, .. } => json!({
                "schema": JSON_SCHEMA, "budget": budget.name, "units": budget.units,
                "per": budget.per.name(), "unit": budget.unit,
            }),
            Self::Deleted(budget) => json!({
                "schema": JSON_SCHEMA, "deleted": budget.name, "units": budget.units,
                "per": budget.per.name(), "unit": budget.unit, "undo": undo(budget),
            }),
            Self::Reset { name, scopes, loops } => {
                json!({ "schema": JSON_SCHEMA, "budget": name, "scopes": scopes, "loops": loops })
            }
        }
    }
}
