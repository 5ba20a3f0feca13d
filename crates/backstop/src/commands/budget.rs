//! `backstop budget`: allowances that are spent before work.

use crate::error::{CliError, usage};
use crate::{process, terminal};
use backstop_core::Name;
use backstop_core::budget::Per;
use backstop_core::nearest::nearest;
use backstop_report::{BudgetChange, BudgetList};
use backstop_runtime::admission::{self, NewBudget};
use clap::{Args, Subcommand};

/// Show and change budgets: how many attempts may be made in all, in a day, a run or a task.
///
/// Without a command, the budgets are shown.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Budget {
    #[command(subcommand)]
    pub(crate) action: Option<BudgetAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with budgets.
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetAction {
    /// Show what is left
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a budget, or change it: what is not given stays as it is
    Set {
        /// The budget's name
        name: String,
        /// The number of units
        #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000_000_000))]
        units: u64,
        /// The period: total, day, run or task (default for a new budget: total)
        #[arg(long, value_name = "SCOPE")]
        per: Option<String>,
        /// What a unit is; `exec` spends one iteration an attempt, and a new budget counts those
        #[arg(long, value_name = "UNIT")]
        unit: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a budget and what was spent of it
    Delete {
        /// The budget's name
        name: String,
        /// Reason; it is recorded
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set what was spent back to zero
    Reset {
        /// The budget's name
        name: String,
        /// Only for this day, run or task
        #[arg(long, value_name = "SCOPE")]
        scope: Option<String>,
        /// Reason; it is recorded
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Budget) -> Result<(), CliError> {
    let Some(action) = &args.action else { return status(args.json) };
    match action {
        BudgetAction::Status { json } => status(*json),
        BudgetAction::Set { name, units, per, unit, json } => {
            set(name, *units, per.as_deref(), unit.as_deref(), *json)
        }
        BudgetAction::Delete { name, why, json } => delete(name, why.as_deref(), *json),
        BudgetAction::Reset { name, scope, why, json } => {
            reset(name, scope.as_deref(), why.as_deref(), *json)
        }
    }
}

fn status(json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    terminal::show(&BudgetList(project.limits()?.budget_states()?), json)
}

fn set(name: &str, units: u64, per: Option<&str>, unit: Option<&str>, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let unit: Option<Name> = unit.map(str::parse).transpose()?;
    let per = per.map(|per| Per::from_name(per).ok_or_else(|| no_scope(per))).transpose()?;
    let project = process::open(&[], None)?;
    let (budget, before) = admission::set_budget(&project, NewBudget { name, units, per, unit })?;
    terminal::show(&BudgetChange::Set { budget, before }, json)
}

fn delete(name: &str, why: Option<&str>, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let project = process::open(&[], None)?;
    terminal::show(&BudgetChange::Deleted(admission::delete_budget(&project, &name, why)?), json)
}

fn no_scope(given: &str) -> CliError {
    let hint = match nearest(given, Per::NAMES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "for example: `backstop budget set night 50 --per day`".to_owned(),
    };
    usage(format!("`{given}` is no scope of a budget: use total, day, run or task")).hint(hint)
}

fn reset(name: &str, scope: Option<&str>, why: Option<&str>, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let project = process::open(&[], None)?;
    let (scopes, loops) = admission::reset_budget(&project, &name, scope, why)?;
    terminal::show(&BudgetChange::Reset { name, scopes, loops }, json)
}
