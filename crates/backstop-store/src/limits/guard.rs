//! Guards: the rate-limit state of each provider, shared by all processes of a user.

use super::LimitStore;
use crate::{ProcessId, StoreError};
use backstop_core::guard::{Closed, GuardKey, GuardState, stricter};
use backstop_core::{BootTime, ClockReading, Name, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "provider, learned_at, until, why, queue, answers, refusals, updated_at, boot, \
     learned_boot_ms, in_words, probed_at";

impl LimitStore {
    /// The guard that holds for whoever asks under this key: of several, the one that is closed
    /// longest. A provider's name stands for all its accounts. `None` if nothing is known.
    pub fn guard(&self, asked: impl Into<GuardKey>) -> Result<Option<GuardState>, StoreError> {
        let asked = asked.into();
        let reading = self.reading();
        let now = reading.wall;
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM guards WHERE {OF_PROVIDER}");
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map([asked.provider.as_str()], |row| read(row, &reading))?;
            let mut strictest: Option<GuardState> = None;
            for row in rows {
                let state = row?;
                let left = |state: &GuardState| state.closed.as_ref().map(|closed| closed.left(now));
                if asked.is_held_by(&state.key) && strictest.as_ref().is_none_or(|s| left(&state) > left(s)) {
                    strictest = Some(state);
                }
            }
            Ok(strictest)
        })
    }

    /// All guards, by name.
    pub fn guards(&self) -> Result<Vec<GuardState>, StoreError> {
        let reading = self.reading();
        self.db.read(|conn| {
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM guards ORDER BY provider"))?;
            let rows = statement.query_map([], |row| read(row, &reading))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Learns from an answer. Of the known and the learned closing, the stricter one holds; it is
    /// returned.
    pub fn learn(&self, key: impl Into<GuardKey>, learned: Option<Closed>) -> Result<GuardState, StoreError> {
        let key = key.into().to_string();
        let reading = self.reading();
        let now = reading.wall;
        let learned =
            learned.map(|closed| Closed { why: self.redactor.redact(&closed.why).into_owned(), ..closed });
        self.db.write(None, false, |tx| {
            let known = find(tx, &key, &reading)?;
            let was = known.as_ref().and_then(|guard| guard.closed.clone());
            let refused = i64::from(learned.is_some());
            // The queue starts over when the guard closes anew.
            let queue = if was.is_none() { 0 } else { known.map_or(0, |guard| guard.queue) };
            let closed = stricter(was, learned, now);
            let stamp = closed.as_ref().and_then(|closed| reading.stamp(closed.learned_at));
            tx.execute(
                "INSERT INTO guards (provider, learned_at, until, why, queue, answers, refusals, updated_at, boot, \
                 learned_boot_ms, in_words) VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10) \
                 ON CONFLICT (provider) DO UPDATE SET learned_at = ?2, until = ?3, why = ?4, queue = ?5, \
                 answers = answers + 1, refusals = refusals + ?6, updated_at = ?7, boot = ?8, learned_boot_ms = ?9, \
                 in_words = ?10",
                params![
                    key,
                    closed.as_ref().map(|c| c.learned_at.as_millis()),
                    closed.as_ref().map(|c| c.until.as_millis()),
                    closed.as_ref().map(|c| c.why.clone()),
                    i64::try_from(queue).unwrap_or(i64::MAX),
                    refused,
                    now.as_millis(),
                    stamp.map(|stamp| stamp.boot),
                    stamp.map(|stamp| stamp.millis),
                    closed.as_ref().is_some_and(|c| c.in_words),
                ],
            )?;
            find(tx, &key, &reading)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
        })
    }

    /// Takes a place in the queue of waiters of one guard, counted from 0. The waiter is counted as
    /// long as its process is there, or until it leaves.
    pub fn queue(&self, key: impl Into<GuardKey>, waiter: &ProcessId) -> Result<u64, StoreError> {
        let key = key.into().to_string();
        self.db.write(None, false, |tx| {
            let place = tx.query_row(
                "UPDATE guards SET queue = queue + 1 WHERE provider = ?1 RETURNING queue - 1",
                [&key],
                |row| row.get::<_, i64>(0),
            );
            let place = place.optional()?.unwrap_or(0);
            tx.execute(
                "INSERT OR IGNORE INTO waiters (guard, place, pid, start) VALUES (?1, ?2, ?3, ?4)",
                params![key, place, waiter.pid, waiter.start.cast_signed()],
            )?;
            Ok(place.cast_unsigned())
        })
    }

    /// The waiter has its answer, or does not want it any more.
    pub fn leave_queue(
        &self,
        key: impl Into<GuardKey>,
        place: u64,
        waiter: &ProcessId,
    ) -> Result<(), StoreError> {
        let key = key.into().to_string();
        self.db.write_one(None, |conn| {
            conn.execute(
                "DELETE FROM waiters WHERE guard = ?1 AND place = ?2 AND pid = ?3 AND start = ?4",
                params![key, place.cast_signed(), waiter.pid, waiter.start.cast_signed()],
            )
        })?;
        Ok(())
    }

    /// How many wait for a guard now. One whose process is gone does not wait.
    pub fn waiting(
        &self,
        key: &GuardKey,
        is_alive: &dyn Fn(&ProcessId) -> bool,
    ) -> Result<usize, StoreError> {
        let key = key.to_string();
        let waiters: Vec<ProcessId> = self.db.read(|conn| {
            let mut statement = conn.prepare("SELECT pid, start FROM waiters WHERE guard = ?1")?;
            let rows = statement.query_map([&key], |row| {
                Ok(ProcessId { pid: row.get(0)?, start: row.get::<_, i64>(1)?.cast_unsigned() })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        Ok(waiters.iter().filter(|waiter| is_alive(waiter)).count())
    }

    /// Lets one caller through although a sentence has closed the guard, if nobody has tried for a
    /// while. Of many who ask at once, one is let through.
    pub fn probe_guard(&self, key: impl Into<GuardKey>) -> Result<bool, StoreError> {
        let key = key.into().to_string();
        let reading = self.reading();
        let is_due = |guard: Option<GuardState>| {
            guard.is_some_and(|guard| {
                guard.closed.is_some_and(|closed| closed.probe_is_due(guard.probed_at, reading.wall))
            })
        };
        // Most of the time it is not due, which a read shows.
        if !is_due(self.db.read(|conn| Ok(find(conn, &key, &reading)?))?) {
            return Ok(false);
        }
        self.db.write(None, false, |tx| {
            let due = is_due(find(tx, &key, &reading)?);
            if due {
                let sql = "UPDATE guards SET probed_at = ?2 WHERE provider = ?1";
                tx.execute(sql, params![key, reading.wall.as_millis()])?;
            }
            Ok(due)
        })
    }

    /// Opens one guard: a probe was served.
    pub fn open_guard(&self, key: impl Into<GuardKey>) -> Result<(), StoreError> {
        let key = key.into().to_string();
        let now = self.now();
        self.db.write(None, false, |tx| {
            tx.execute(&format!("{OPENED} WHERE provider = ?1"), params![key, now.as_millis()])?;
            tx.execute("DELETE FROM waiters WHERE guard = ?1", [&key])?;
            Ok(())
        })
    }

    /// Opens every guard of a provider; returns whether one was closed.
    pub fn clear_guard(&self, provider: &Name) -> Result<bool, StoreError> {
        let now = self.now();
        self.db.write(None, false, |tx| {
            let was: bool = tx.query_row(
                &format!("SELECT EXISTS (SELECT 1 FROM guards WHERE {OF_PROVIDER} AND until > ?2)"),
                params![provider.as_str(), now.as_millis()],
                |row| row.get(0),
            )?;
            let sql = format!("{OPENED} WHERE {OF_PROVIDER}");
            tx.execute(&sql, params![provider.as_str(), now.as_millis()])?;
            tx.execute(&format!("DELETE FROM windows WHERE {OF_PROVIDER}"), [provider.as_str()])?;
            Ok(was)
        })
    }

    /// The random secret with which accounts are hashed, if one was made.
    pub fn account_secret(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.db.read(|conn| {
            let found = conn.query_row("SELECT secret FROM account_secret", [], |row| row.get(0));
            Ok(found.optional()?)
        })
    }

    /// The same; where there is none, this one is kept.
    pub fn account_secret_or(&self, random: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.db.write(None, false, |tx| {
            tx.execute("INSERT OR IGNORE INTO account_secret (id, secret) VALUES (1, ?1)", [random])?;
            Ok(tx.query_row("SELECT secret FROM account_secret", [], |row| row.get(0))?)
        })
    }
}

/// Opens the guards that a condition selects.
const OPENED: &str = "UPDATE guards SET learned_at = NULL, until = NULL, why = NULL, queue = 0, updated_at = ?2, \
     boot = NULL, learned_boot_ms = NULL, in_words = 0, probed_at = NULL";

/// The guards of a provider, of all its accounts and models. Their keys begin with its name; `@`
/// and `/` are in no name, and `0` and `A` come after them.
const OF_PROVIDER: &str = "(provider = ?1 OR (provider >= ?1 || '@' AND provider < ?1 || 'A') \
     OR (provider >= ?1 || '/' AND provider < ?1 || '0'))";

fn find(conn: &Connection, key: &str, now: &ClockReading) -> rusqlite::Result<Option<GuardState>> {
    let sql = format!("SELECT {COLUMNS} FROM guards WHERE provider = ?1");
    conn.query_row(&sql, [key], |row| read(row, now)).optional()
}

fn read(row: &Row<'_>, now: &ClockReading) -> rusqlite::Result<GuardState> {
    let stamp = stamp(row.get(8)?, row.get(9)?);
    let closed = match (row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?) {
        (Some(learned_at), Some(until)) => Some(Closed {
            learned_at: Timestamp::from_millis(learned_at),
            until: Timestamp::from_millis(until),
            why: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            in_words: row.get(10)?,
        }),
        _ => None,
    };
    Ok(GuardState {
        key: key_of(row)?,
        closed: closed.map(|closed| closed.settled(stamp, now)).filter(|closed| closed.holds(now.wall)),
        queue: row.get::<_, i64>(4)?.cast_unsigned(),
        answers: row.get::<_, i64>(5)?.cast_unsigned(),
        refusals: row.get::<_, i64>(6)?.cast_unsigned(),
        updated_at: Timestamp::from_millis(row.get(7)?),
        probed_at: row.get::<_, Option<i64>>(11)?.map(Timestamp::from_millis),
    })
}

/// A time since the machine was started, as stored.
pub(super) fn stamp(boot: Option<i64>, millis: Option<i64>) -> Option<BootTime> {
    Some(BootTime { boot: boot?, millis: millis? })
}

fn key_of(row: &Row<'_>) -> rusqlite::Result<GuardKey> {
    let text: String = row.get(0)?;
    GuardKey::parse(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            0,
            rusqlite::types::Type::Text,
            format!("`{text}` is no guard").into(),
        )
    })
}
