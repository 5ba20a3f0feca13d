//! Circuit breakers, shared by all processes of a user.

use super::LimitStore;
use super::guard::stamp;
use crate::StoreError;
use backstop_core::breaker::{Breaker, BreakerState, Pass};
use backstop_core::{ClockReading, Name, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "provider, operation, failures, opened, open_since, probe_since, updated_at, boot, \
     open_boot_ms, probe_boot_ms";

impl LimitStore {
    /// Asks whether an attempt may begin. While the breaker is half-open, one caller is let through
    /// as a probe.
    pub fn ask_breaker(&self, provider: &Name, operation: &str) -> Result<Pass, StoreError> {
        let now = self.reading();
        // Most of the time it is closed, or open for longer, which a read shows: an open breaker is
        // obeyed even where nothing can be written.
        let Some(mut known) = self.db.read(|conn| Ok(find(conn, provider, operation, &now)?))? else {
            return Ok(Pass::Closed);
        };
        let pass = known.ask(now.wall);
        if pass != Pass::Probe {
            return Ok(pass);
        }
        self.db.write(None, false, |tx| {
            let Some(mut breaker) = find(tx, provider, operation, &now)? else { return Ok(Pass::Closed) };
            let pass = breaker.ask(now.wall);
            if pass == Pass::Probe {
                keep(tx, provider, operation, &breaker, &now)?;
            }
            Ok(pass)
        })
    }

    /// Reports the result of an attempt. Returns the breaker's state before and after.
    pub fn tell_breaker(
        &self,
        provider: &Name,
        operation: &str,
        succeeded: bool,
    ) -> Result<(Breaker, Breaker), StoreError> {
        let now = self.reading();
        // Most of the time a success changes nothing.
        if succeeded {
            let known = self.db.read(|conn| Ok(find(conn, provider, operation, &now)?))?;
            if known.is_none_or(|breaker| breaker == Breaker::default()) {
                return Ok(Default::default());
            }
        }
        self.db.write(None, false, |tx| {
            let known = find(tx, provider, operation, &now)?;
            let mut breaker = known.unwrap_or_default();
            if succeeded {
                breaker.succeeded();
            } else {
                breaker.failed(now.wall);
            }
            if !succeeded || known.is_some() {
                keep(tx, provider, operation, &breaker, &now)?;
            }
            Ok((known.unwrap_or_default(), breaker))
        })
    }

    /// All breakers that have recorded a failure.
    pub fn breakers(&self) -> Result<Vec<BreakerState>, StoreError> {
        let now = self.reading();
        self.db.read(|conn| {
            let sql =
                format!("SELECT {COLUMNS} FROM breakers WHERE failures > 0 ORDER BY provider, operation");
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map([], |row| {
                Ok(BreakerState {
                    provider: crate::summary::parsed(row, 0)?,
                    operation: row.get(1)?,
                    breaker: read(row, &now)?,
                    updated_at: Timestamp::from_millis(row.get(6)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Closes all breakers of a provider; returns how many were not closed.
    pub fn clear_breakers(&self, provider: &Name) -> Result<usize, StoreError> {
        self.db.write_one(None, |conn| {
            conn.execute("DELETE FROM breakers WHERE provider = ?1", [provider.as_str()])
        })
    }
}

fn find(
    conn: &Connection,
    provider: &Name,
    operation: &str,
    now: &ClockReading,
) -> rusqlite::Result<Option<Breaker>> {
    let sql = format!("SELECT {COLUMNS} FROM breakers WHERE provider = ?1 AND operation = ?2");
    conn.query_row(&sql, [provider.as_str(), operation], |row| read(row, now)).optional()
}

fn read(row: &Row<'_>, now: &ClockReading) -> rusqlite::Result<Breaker> {
    let boot: Option<i64> = row.get(7)?;
    let time = |column, boot_column| {
        let at = row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis);
        let stamp = stamp(boot, row.get(boot_column)?);
        Ok::<_, rusqlite::Error>(at.map(|at| now.settle(at, stamp)))
    };
    Ok(Breaker {
        failures: row.get(2)?,
        opened: row.get(3)?,
        open_since: time(4, 8)?,
        probe_since: time(5, 9)?,
    })
}

fn keep(
    conn: &Connection,
    provider: &Name,
    operation: &str,
    breaker: &Breaker,
    now: &ClockReading,
) -> rusqlite::Result<()> {
    let boot_ms = |at: Option<Timestamp>| at.and_then(|at| now.stamp(at)).map(|stamp| stamp.millis);
    conn.execute(
        "INSERT INTO breakers (provider, operation, failures, opened, open_since, probe_since, updated_at, boot, \
         open_boot_ms, probe_boot_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
         ON CONFLICT (provider, operation) DO UPDATE SET failures = ?3, opened = ?4, open_since = ?5, \
         probe_since = ?6, updated_at = ?7, boot = ?8, open_boot_ms = ?9, probe_boot_ms = ?10",
        params![
            provider.as_str(),
            operation,
            breaker.failures,
            breaker.opened,
            breaker.open_since.map(Timestamp::as_millis),
            breaker.probe_since.map(Timestamp::as_millis),
            now.wall.as_millis(),
            now.boot.map(|boot| boot.boot),
            boot_ms(breaker.open_since),
            boot_ms(breaker.probe_since),
        ],
    )?;
    Ok(())
}
