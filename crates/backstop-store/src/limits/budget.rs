//! Budgets: bounded allowances, spent before work and refunded where nothing was done.

use super::LimitStore;
use crate::StoreError;
use backstop_core::budget::{Budget, BudgetState, Per};
use backstop_core::{Name, Timestamp};
use rusqlite::{OptionalExtension, params};

/// The length of a day's name, `2026-11-18`.
const DAY_CHARS: usize = 10;
/// A day in milliseconds.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The result of spending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spending {
    /// The units were spent.
    Spent {
        /// How many units are left.
        remaining: u64,
    },
    /// Too few units were left; nothing was spent.
    Exhausted {
        /// How many units are left.
        remaining: u64,
    },
    /// There is no such budget.
    Unknown,
}

impl LimitStore {
    /// Creates or changes a budget. What was spent stays spent.
    pub fn set_budget(&self, budget: &Budget) -> Result<(), StoreError> {
        let now = self.now().as_millis();
        self.db.write_one(None, |conn| {
            conn.execute(
                "INSERT INTO budgets (name, units, per, unit, updated_at) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT (name) DO UPDATE SET units = ?2, per = ?3, unit = ?4, updated_at = ?5",
                params![budget.name.as_str(), number(budget.units), budget.per.name(), budget.unit, now],
            )
        })?;
        Ok(())
    }

    /// A budget by its name.
    pub fn budget(&self, name: &Name) -> Result<Option<Budget>, StoreError> {
        self.db.read(|conn| {
            let found = conn.query_row(
                "SELECT units, per, unit FROM budgets WHERE name = ?1",
                [name.as_str()],
                |row| {
                    Ok(Budget {
                        name: name.clone(),
                        units: row.get::<_, i64>(0)?.cast_unsigned(),
                        per: crate::summary::worded(row, 1, Per::from_name)?,
                        unit: row.get(2)?,
                    })
                },
            );
            Ok(found.optional()?)
        })
    }

    /// Spends units, all or none.
    pub fn spend(&self, name: &Name, scope: &str, units: u64) -> Result<Spending, StoreError> {
        let Some(budget) = self.budget(name)? else { return Ok(Spending::Unknown) };
        let reading = self.reading();
        let now = reading.wall.as_millis();
        self.db.write(None, false, |tx| {
            let spent: Option<i64> = tx
                .query_row("SELECT units FROM spent WHERE budget = ?1 AND scope = ?2", [name.as_str(), scope], |row| row.get(0))
                .optional()?;
            let remaining = budget.units.saturating_sub(spent.unwrap_or(0).cast_unsigned());
            let enough = remaining >= units;
            tx.execute(
                "INSERT INTO spent (budget, scope, units, refused, updated_at, boot, began_boot_ms, began_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?5) \
                 ON CONFLICT (budget, scope) DO UPDATE SET units = units + ?3, refused = refused + ?4, updated_at = ?5",
                params![
                    name.as_str(),
                    scope,
                    if enough { number(units) } else { 0 },
                    i64::from(!enough),
                    now,
                    reading.boot.map(|boot| boot.boot),
                    reading.boot.map(|boot| boot.millis),
                ],
            )?;
            Ok(if enough {
                Spending::Spent { remaining: remaining - units }
            } else {
                Spending::Exhausted { remaining }
            })
        })
    }

    /// How many units are left in a scope, without spending any.
    pub fn remaining(&self, name: &Name, scope: &str) -> Result<Option<u64>, StoreError> {
        let Some(budget) = self.budget(name)? else { return Ok(None) };
        let states = self.budget_states()?;
        let state = states.iter().find(|state| state.budget.name == *name && state.scope == scope);
        Ok(Some(state.map_or(budget.units, BudgetState::remaining)))
    }

    /// The day in which a budget is spent now: today, unless the clock was set since the day that
    /// was spent from last began. A clock that is set back or forward gives no budget anew.
    pub fn budget_day(&self, name: &Name) -> Result<String, StoreError> {
        let reading = self.reading();
        let today = day(reading.wall);
        let Some(boot) = reading.boot else { return Ok(today) };
        let last: Option<(String, i64, Option<i64>)> = self.db.read(|conn| {
            let found = conn.query_row(
                "SELECT scope, began_boot_ms, began_at FROM spent WHERE budget = ?1 AND boot = ?2 AND length(scope) = 10 \
                 ORDER BY began_boot_ms DESC, scope DESC LIMIT 1",
                params![name.as_str(), boot.boot],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            );
            Ok(found.optional()?)
        })?;
        let Some((scope, began_boot, began_at)) = last else { return Ok(today) };
        let passed = boot.millis.saturating_sub(began_boot);
        // The same day by a clock that nobody sets.
        let is_same =
            began_at.is_some_and(|began| day(Timestamp::from_millis(began.saturating_add(passed))) == scope);
        let is_ahead = scope > today && passed < DAY_MS;
        Ok(if is_same || is_ahead { scope } else { today })
    }

    /// Refunds units; returns how many are left.
    pub fn refund(&self, name: &Name, scope: &str, units: u64) -> Result<u64, StoreError> {
        let now = self.now().as_millis();
        self.db.write_one(None, |conn| {
            conn.execute(
                "UPDATE spent SET units = max(0, units - ?3), updated_at = ?4 WHERE budget = ?1 AND scope = ?2",
                params![name.as_str(), scope, number(units), now],
            )
        })?;
        let left = self
            .budget_states()?
            .into_iter()
            .find(|state| state.budget.name == *name && state.scope == scope);
        Ok(left.map_or(0, |state| state.remaining()))
    }

    /// All budgets with all their scopes, newest scope first. A budget without any spending has an
    /// empty scope.
    pub fn budget_states(&self) -> Result<Vec<BudgetState>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT b.name, b.units, b.per, b.unit, s.scope, s.units, s.refused, s.updated_at FROM budgets AS b \
                 LEFT JOIN spent AS s ON s.budget = b.name ORDER BY b.name, s.updated_at DESC LIMIT 1000",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(BudgetState {
                    budget: Budget {
                        name: crate::summary::parsed(row, 0)?,
                        units: row.get::<_, i64>(1)?.cast_unsigned(),
                        per: crate::summary::worded(row, 2, Per::from_name)?,
                        unit: row.get(3)?,
                    },
                    scope: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
                    spent: row.get::<_, Option<i64>>(5)?.unwrap_or(0).cast_unsigned(),
                    refused: row.get::<_, Option<i64>>(6)?.unwrap_or(0).cast_unsigned(),
                    updated_at: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Removes a budget and what was spent of it; returns whether there was one.
    pub fn delete_budget(&self, name: &Name) -> Result<bool, StoreError> {
        self.db.write(None, false, |tx| {
            tx.execute("DELETE FROM spent WHERE budget = ?1", [name.as_str()])?;
            Ok(tx.execute("DELETE FROM budgets WHERE name = ?1", [name.as_str()])? == 1)
        })
    }

    /// Resets a budget in one scope or in all; returns the number of scopes.
    pub fn reset_budget(&self, name: &Name, scope: Option<&str>) -> Result<usize, StoreError> {
        self.db.write_one(None, |conn| match scope {
            Some(scope) => {
                conn.execute("DELETE FROM spent WHERE budget = ?1 AND scope = ?2", [name.as_str(), scope])
            }
            None => conn.execute("DELETE FROM spent WHERE budget = ?1", [name.as_str()]),
        })
    }
}

/// The name of the day of a time.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(DAY_CHARS).collect()
}

fn number(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}
