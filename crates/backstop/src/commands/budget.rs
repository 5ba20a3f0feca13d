//! `backstop budget`: allowances that are spent before work.

use crate::error::{CliError, usage};
use crate::process;
use crate::terminal;
use backstop_core::nearest::nearest;
use backstop_core::{Name, SafeText};
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_runtime::ProjectError;
use backstop_runtime::aftermath::record_override;
use backstop_store::{Budget as Allowance, BudgetState, LimitStore, Per};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// The unit of a budget that names none.
const UNIT: &str = "iterations";

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

fn state_json(state: &BudgetState) -> Value {
    json!({
        "budget": state.budget.name, "units": state.budget.units, "per": state.budget.per.name(), "unit": state.budget.unit,
        "scope": state.scope, "spent": state.spent, "remaining": state.remaining(), "refused": state.refused,
        "updated_at": state.updated_at,
    })
}

fn status(json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let states = project.limits()?.budget_states()?;
    if json {
        let rows: Vec<Value> = states.iter().map(state_json).collect();
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "budgets": rows }))
        ));
    }
    if states.is_empty() {
        return terminal::print("no budget is set; `backstop budget set NAME UNITS --per day` sets one\n");
    }
    let rows: Vec<Vec<String>> = states
        .iter()
        .map(|state| {
            let scope = if state.scope.is_empty() {
                "-".to_owned()
            } else {
                SafeText::new(state.scope.clone()).line(40)
            };
            vec![
                state.budget.name.to_string(),
                format!("{} of {}", state.remaining(), state.budget.units),
                SafeText::new(state.budget.unit.clone()).line(20),
                state.budget.per.words().to_owned(),
                scope,
                state.refused.to_string(),
            ]
        })
        .collect();
    terminal::print(&table(&["BUDGET", "LEFT", "UNIT", "FOR", "SCOPE", "REFUSED"], &rows))
}

fn set(name: &str, units: u64, per: Option<&str>, unit: Option<&str>, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let unit: Option<Name> = unit.map(str::parse).transpose()?;
    let per = per.map(|per| Per::from_name(per).ok_or_else(|| no_scope(per))).transpose()?;
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let before = store.budget(&name)?;
    let budget = Allowance {
        units,
        per: per.or(before.as_ref().map(|known| known.per)).unwrap_or(Per::Total),
        unit: unit
            .map(|unit| unit.to_string())
            .or_else(|| before.as_ref().map(|known| known.unit.clone()))
            .unwrap_or_else(|| UNIT.to_owned()),
        name,
    };
    store.set_budget(&budget)?;
    terminal::print(&if json {
        let value = json!({ "schema": JSON_SCHEMA, "budget": budget.name, "units": units, "per": budget.per.name(), "unit": budget.unit });
        format!("{}\n", to_json(&value))
    } else {
        let was = before.filter(|known| *known != budget).map(|known| format!(" (was {})", sized(&known)));
        format!(
            "budget {}: {}{}; `backstop exec --budget {} -- COMMAND` spends it\n",
            budget.name,
            sized(&budget),
            was.unwrap_or_default(),
            budget.name
        )
    })
}

/// `50 iterations per day`.
fn sized(budget: &Allowance) -> String {
    let unit = SafeText::new(budget.unit.clone()).line(20);
    format!("{} {unit} {}", budget.units, budget.per.words())
}

fn delete(name: &str, why: Option<&str>, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let Some(budget) = store.budget(&name)? else { return Err(unknown(store, &name)?) };
    record_override(&project, "budget", &format!("budget delete {name}"), why)?;
    store.delete_budget(&name)?;
    let unit = if budget.unit == UNIT { String::new() } else { format!(" --unit {}", budget.unit) };
    let undo = format!("backstop budget set {name} {} --per {}{unit}", budget.units, budget.per.name());
    terminal::print(&if json {
        let value = json!({ "schema": JSON_SCHEMA, "deleted": name, "units": budget.units, "per": budget.per.name(), "unit": budget.unit, "undo": undo });
        format!("{}\n", to_json(&value))
    } else {
        format!("budget {name} is deleted ({}); `{undo}` makes it again\n", sized(&budget))
    })
}

/// There is no such budget.
fn unknown(store: &LimitStore, given: &Name) -> Result<CliError, CliError> {
    let known = store.budget_states()?.iter().map(|state| state.budget.name.to_string()).collect();
    Ok(ProjectError::NoBudget { given: given.to_string(), known }.into())
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
    let store = project.limits()?;
    if store.budget(&name)?.is_none() {
        return Err(unknown(store, &name)?);
    }
    record_override(&project, "budget", &format!("budget reset {name}"), why)?;
    let scopes = store.reset_budget(&name, scope)?;
    // Whoever gives a budget anew wants the loop to go on.
    let loops = store.end_streaks()?;
    terminal::print(&if json {
        format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "budget": name, "scopes": scopes, "loops": loops }))
        )
    } else {
        format!("budget {name} is whole again\n")
    })
}
