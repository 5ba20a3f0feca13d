//! Guards: the rate-limit state of each provider, shared by all processes of a user.

use super::LimitStore;
use crate::StoreError;
use backstop_core::guard::{Closed, stricter};
use backstop_core::{Name, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// A guard, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardState {
    /// The provider.
    pub provider: Name,
    /// Until when it is closed, and why, if it still is.
    pub closed: Option<Closed>,
    /// The number of waiters that have queued since it closed.
    pub queue: u64,
    /// The number of answers that it has learned from.
    pub answers: u64,
    /// The number of those answers that closed it.
    pub refusals: u64,
    /// When it last learned something.
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "provider, learned_at, until, why, queue, answers, refusals, updated_at";

impl LimitStore {
    /// A guard; `None` if nothing is known of the provider.
    pub fn guard(&self, provider: &Name) -> Result<Option<GuardState>, StoreError> {
        let now = self.now();
        self.db.read(|conn| Ok(find(conn, provider, now)?))
    }

    /// All guards, by name.
    pub fn guards(&self) -> Result<Vec<GuardState>, StoreError> {
        let now = self.now();
        self.db.read(|conn| {
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM guards ORDER BY provider"))?;
            let rows = statement.query_map([], |row| read(row, now))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Learns from an answer. Of the known and the learned closing, the stricter one holds; it is
    /// returned.
    pub fn learn(&self, provider: &Name, learned: Option<Closed>) -> Result<GuardState, StoreError> {
        let now = self.now();
        let learned =
            learned.map(|closed| Closed { why: self.redactor.redact(&closed.why).into_owned(), ..closed });
        self.db.write(None, false, |tx| {
            let known = find(tx, provider, now)?;
            let was = known.as_ref().and_then(|guard| guard.closed.clone());
            let refused = i64::from(learned.is_some());
            // The queue starts over when the guard closes anew.
            let queue = if was.is_none() { 0 } else { known.map_or(0, |guard| guard.queue) };
            let closed = stricter(was, learned, now);
            tx.execute(
                "INSERT INTO guards (provider, learned_at, until, why, queue, answers, refusals, updated_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7) ON CONFLICT (provider) DO UPDATE SET learned_at = ?2, until = ?3, \
                 why = ?4, queue = ?5, answers = answers + 1, refusals = refusals + ?6, updated_at = ?7",
                params![
                    provider.as_str(),
                    closed.as_ref().map(|c| c.learned_at.as_millis()),
                    closed.as_ref().map(|c| c.until.as_millis()),
                    closed.as_ref().map(|c| c.why.clone()),
                    i64::try_from(queue).unwrap_or(i64::MAX),
                    refused,
                    now.as_millis(),
                ],
            )?;
            find(tx, provider, now)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
        })
    }

    /// Takes a place in the queue of waiters, counted from 0.
    pub fn queue(&self, provider: &Name) -> Result<u64, StoreError> {
        self.db.write_one(None, |conn| {
            let place = conn.query_row(
                "UPDATE guards SET queue = queue + 1 WHERE provider = ?1 RETURNING queue - 1",
                [provider.as_str()],
                |row| row.get::<_, i64>(0),
            );
            Ok(place.optional()?.map_or(0, i64::cast_unsigned))
        })
    }

    /// Opens a guard; returns whether it was closed.
    pub fn clear_guard(&self, provider: &Name) -> Result<bool, StoreError> {
        let now = self.now();
        self.db.write(None, false, |tx| {
            let was = find(tx, provider, now)?.is_some_and(|guard| guard.closed.is_some());
            tx.execute(
                "UPDATE guards SET learned_at = NULL, until = NULL, why = NULL, queue = 0, updated_at = ?2 WHERE provider = ?1",
                params![provider.as_str(), now.as_millis()],
            )?;
            Ok(was)
        })
    }
}

fn find(conn: &Connection, provider: &Name, now: Timestamp) -> rusqlite::Result<Option<GuardState>> {
    let sql = format!("SELECT {COLUMNS} FROM guards WHERE provider = ?1");
    conn.query_row(&sql, [provider.as_str()], |row| read(row, now)).optional()
}

fn read(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<GuardState> {
    let closed = match (row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?) {
        (Some(learned_at), Some(until)) => Some(Closed {
            learned_at: Timestamp::from_millis(learned_at),
            until: Timestamp::from_millis(until),
            why: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(GuardState {
        provider: crate::summary::parsed(row, 0)?,
        closed: closed.filter(|closed| closed.holds(now)),
        queue: row.get::<_, i64>(4)?.cast_unsigned(),
        answers: row.get::<_, i64>(5)?.cast_unsigned(),
        refusals: row.get::<_, i64>(6)?.cast_unsigned(),
        updated_at: Timestamp::from_millis(row.get(7)?),
    })
}
