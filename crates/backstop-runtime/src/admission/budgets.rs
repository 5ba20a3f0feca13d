//! What a person does to budgets: set, delete, reset.

use crate::aftermath::record_override;
use crate::project::{Project, ProjectError};
use backstop_core::Name;
use backstop_core::budget::{Budget, Per, UNIT};
use backstop_store::LimitStore;

/// What is known of a budget that is to be set; what is `None` stays as it is, or is the default of
/// a new one.
#[derive(Debug, Clone)]
pub struct NewBudget {
    /// Its name.
    pub name: Name,
    /// The number of units.
    pub units: u64,
    /// The scope that it is counted in.
    pub per: Option<Per>,
    /// The unit.
    pub unit: Option<Name>,
}

/// Makes or changes a budget. Gives it as it is, and as it was.
pub fn set_budget(project: &Project, new: NewBudget) -> Result<(Budget, Option<Budget>), ProjectError> {
    let store = project.limits()?;
    let before = store.budget(&new.name)?;
    let known = before.as_ref();
    let unit = new.unit.map(|unit| unit.to_string()).or_else(|| known.map(|known| known.unit.clone()));
    let budget = Budget {
        name: new.name,
        units: new.units,
        per: new.per.or(known.map(|known| known.per)).unwrap_or(Per::Total),
        unit: unit.unwrap_or_else(|| UNIT.to_owned()),
    };
    store.set_budget(&budget)?;
    Ok((budget, before))
}

/// Removes a budget and what was spent of it, which is recorded first. Gives it as it was.
pub fn delete_budget(project: &Project, name: &Name, why: Option<&str>) -> Result<Budget, ProjectError> {
    let store = project.limits()?;
    let budget = existing(store, name)?;
    record_override(project, "budget", &format!("budget delete {name}"), why)?;
    store.delete_budget(name)?;
    Ok(budget)
}

/// Sets what was spent of a budget back to zero, which is recorded first. Gives the number of
/// scopes, and of loops that may go on: whoever gives a budget anew wants the loop to go on.
pub fn reset_budget(
    project: &Project,
    name: &Name,
    scope: Option<&str>,
    why: Option<&str>,
) -> Result<(usize, usize), ProjectError> {
    let store = project.limits()?;
    existing(store, name)?;
    record_override(project, "budget", &format!("budget reset {name}"), why)?;
    Ok((store.reset_budget(name, scope)?, store.end_streaks()?))
}

/// A budget that was set.
pub(crate) fn existing(store: &LimitStore, name: &Name) -> Result<Budget, ProjectError> {
    if let Some(budget) = store.budget(name)? {
        return Ok(budget);
    }
    let known = store.budget_states()?.iter().map(|state| state.budget.name.to_string()).collect();
    Err(ProjectError::NoBudget { given: name.to_string(), known })
}
