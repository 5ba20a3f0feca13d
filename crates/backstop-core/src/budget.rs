//! Budgets: bounded allowances, spent before work and refunded where nothing was done. Where they
//! are counted is the store's business.

use crate::{Name, Timestamp};

/// The unit of a budget that names none.
pub const UNIT: &str = "iterations";

/// The scope that a budget is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Per {
    /// All time, until it is reset.
    Total,
    /// Each day.
    Day,
    /// Each run.
    Run,
    /// Each task.
    Task,
}

impl Per {
    /// The names of all scopes.
    pub const NAMES: &'static [&'static str] = &["total", "day", "run", "task"];

    /// The name in commands and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Per::Total => "total",
            Per::Day => "day",
            Per::Run => "run",
            Per::Task => "task",
        }
    }

    /// How people read it.
    pub fn words(self) -> &'static str {
        match self {
            Per::Total => "in all",
            Per::Day => "per day",
            Per::Run => "per run",
            Per::Task => "per task",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Per::Total, Per::Day, Per::Run, Per::Task].into_iter().find(|per| per.name() == name)
    }
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: Name,
    /// The number of units.
    pub units: u64,
    /// The scope that it is counted in.
    pub per: Per,
    /// The unit, e.g. `iterations`, `tokens`, `cents`.
    pub unit: String,
}

/// A budget, and what was spent of it in one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetState {
    /// The budget.
    pub budget: Budget,
    /// The scope, e.g. a day, a run, a task.
    pub scope: String,
    /// How many units were spent.
    pub spent: u64,
    /// How often spending was refused.
    pub refused: u64,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
}

impl BudgetState {
    /// How many units are left.
    pub fn remaining(&self) -> u64 {
        self.budget.units.saturating_sub(self.spent)
    }
}
