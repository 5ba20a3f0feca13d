//! `backstop budget`: allowances that are spent before work.

use crate::error::{CliError, usage};
use crate::process;
use crate::terminal;
use backstop_core::nearest::nearest;
use backstop_core::{Name, SafeText};
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_runtime::ProjectError;
use backstop_runtime::aftermath::record_override;
use backstop_store::{Budget as Allowance, BudgetState, Per};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Allowances that are spent before work: what is used up stops a loop before it has burnt the
/// night.
#[derive(Debug, Args)]
pub(crate) struct Budget {
    #[command(subcommand)]
    pub(crate) action: BudgetAction,
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
    /// Make a budget, or change its size
    Set {
        /// Its name
        name: String,
        /// How many units there are
        #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000_000_000))]
        units: u64,
        /// For what: total, day, run or task
        #[arg(long, value_name = "SCOPE", default_value = "total")]
        per: String,
        /// What a unit is; `exec` spends one iteration an attempt
        #[arg(long, value_name = "UNIT", default_value = "iterations")]
        unit: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget what was spent, so that there is all of it again
    Reset {
        /// Its name
        name: String,
        /// Only for this day, run or task
        #[arg(long, value_name = "SCOPE")]
        scope: Option<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Budget) -> Result<(), CliError> {
    match &args.action {
        BudgetAction::Status { json } => status(*json),
        BudgetAction::Set { name, units, per, unit, json } => set(name, *units, per, unit, *json),
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
                format!("per {}", state.budget.per.name()),
                scope,
                state.refused.to_string(),
            ]
        })
        .collect();
    terminal::print(&table(&["BUDGET", "LEFT", "UNIT", "FOR", "SCOPE", "REFUSED"], &rows))
}

fn set(name: &str, units: u64, per: &str, unit: &str, json: bool) -> Result<(), CliError> {
    let name: Name = name.parse()?;
    let unit: Name = unit.parse()?;
    let per = Per::from_name(per).ok_or_else(|| no_scope(per))?;
    let project = process::open(&[], None)?;
    let budget = Allowance { name, units, per, unit: unit.to_string() };
    project.limits()?.set_budget(&budget)?;
    terminal::print(&if json {
        let value = json!({ "schema": JSON_SCHEMA, "budget": budget.name, "units": units, "per": per.name(), "unit": budget.unit });
        format!("{}\n", to_json(&value))
    } else {
        let each = if per == Per::Total { "in all".to_owned() } else { format!("per {}", per.name()) };
        format!(
            "budget {}: {units} {} {each}; `backstop exec --budget {} -- COMMAND` spends it\n",
            budget.name, budget.unit, budget.name
        )
    })
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
        let known: Vec<String> =
            store.budget_states()?.iter().map(|state| state.budget.name.to_string()).collect();
        return Err(ProjectError::NoBudget { given: name.to_string(), known }.into());
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
