//! What retries have taught: how often a failure was cured by a retry, and how often in a row an
//! operation failed the same way.

use super::LimitStore;
use crate::{SignatureHistory, StoreError};
use backstop_core::{Reason, Timestamp};
use rusqlite::{OptionalExtension, Row, params};

/// How many signatures are kept; those not seen for longest are removed first.
const SIGNATURES_MAX: u32 = 5_000;

const COLUMNS: &str = "signature, reason, seen, retried, cured, first_at, last_at";

impl LimitStore {
    /// The history of a signature.
    pub fn signature_history(&self, signature: &str) -> Result<Option<SignatureHistory>, StoreError> {
        let signature = self.redactor.redact(signature).into_owned();
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM experience WHERE signature = ?1");
            Ok(conn.query_row(&sql, [signature], read).optional()?)
        })
    }

    /// All histories, most frequent first.
    pub fn signature_histories(&self, limit: u32) -> Result<Vec<SignatureHistory>, StoreError> {
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM experience ORDER BY seen DESC, signature LIMIT ?1");
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map([limit], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Adds to the history of a signature: how often it was seen, retried and cured.
    pub fn note_experience(
        &self,
        signature: &str,
        reason: Reason,
        seen: u64,
        retried: u64,
        cured: u64,
    ) -> Result<(), StoreError> {
        let now = self.now().as_millis();
        let signature = self.redactor.redact(signature).into_owned();
        self.db.write(None, false, |tx| {
            tx.execute(
                "INSERT INTO experience (signature, reason, seen, retried, cured, first_at, last_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (signature) DO UPDATE SET reason = ?2, seen = seen + ?3, \
                 retried = retried + ?4, cured = cured + ?5, last_at = ?6",
                params![signature, reason.code(), seen.cast_signed(), retried.cast_signed(), cured.cast_signed(), now],
            )?;
            let count: u32 = tx.query_row("SELECT count(*) FROM experience", [], |row| row.get(0))?;
            if count > SIGNATURES_MAX {
                tx.execute(
                    "DELETE FROM experience WHERE signature IN (SELECT signature FROM experience ORDER BY last_at LIMIT ?1)",
                    [count - SIGNATURES_MAX],
                )?;
            }
            Ok(())
        })
    }

    /// Counts a failure of an operation with this signature; returns how many in a row there were.
    pub fn note_streak(&self, operation: &str, signature: &str) -> Result<u32, StoreError> {
        let now = self.now().as_millis();
        let (operation, signature) = (self.redactor.redact(operation), self.redactor.redact(signature));
        self.db.write_one(None, |conn| {
            conn.query_row(
                "INSERT INTO streaks (operation, signature, count, updated_at) VALUES (?1, ?2, 1, ?3) \
                 ON CONFLICT (operation) DO UPDATE SET count = CASE WHEN signature = ?2 THEN count + 1 ELSE 1 END, \
                 signature = ?2, updated_at = ?3 RETURNING count",
                params![operation, signature, now],
                |row| row.get(0),
            )
        })
    }

    /// Sets an operation's streak of failures: the signature of the last one, and how many in a row
    /// there were.
    pub fn set_streak(&self, operation: &str, signature: &str, count: u32) -> Result<(), StoreError> {
        let now = self.now().as_millis();
        let (operation, signature) = (self.redactor.redact(operation), self.redactor.redact(signature));
        self.db.write_one(None, |conn| {
            conn.execute(
                "INSERT INTO streaks (operation, signature, count, updated_at) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (operation) DO UPDATE SET signature = ?2, count = ?3, updated_at = ?4",
                params![operation, signature, count, now],
            )
        })?;
        Ok(())
    }

    /// The signature of an operation's current streak of failures, and its length.
    pub fn streak(&self, operation: &str) -> Result<Option<(String, u32)>, StoreError> {
        let operation = self.redactor.redact(operation).into_owned();
        self.db.read(|conn| {
            let sql = "SELECT signature, count FROM streaks WHERE operation = ?1";
            Ok(conn.query_row(sql, [operation], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
        })
    }

    /// Ends the streak of an operation, after a success or at a person's request.
    pub fn end_streak(&self, operation: &str) -> Result<bool, StoreError> {
        let operation = self.redactor.redact(operation).into_owned();
        // Most of the time there is none, which a read shows.
        if self.streak(&operation)?.is_none() {
            return Ok(false);
        }
        self.db.write_one(None, |conn| {
            Ok(conn.execute("DELETE FROM streaks WHERE operation = ?1", [operation])? == 1)
        })
    }

    /// Ends all streaks; returns how many there were.
    pub fn end_streaks(&self) -> Result<usize, StoreError> {
        self.db.write_one(None, |conn| conn.execute("DELETE FROM streaks", []))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<SignatureHistory> {
    Ok(SignatureHistory {
        signature: row.get(0)?,
        reason: crate::summary::worded(row, 1, Reason::from_code)?,
        seen: row.get::<_, i64>(2)?.cast_unsigned(),
        retried: row.get::<_, i64>(3)?.cast_unsigned(),
        cured: row.get::<_, i64>(4)?.cast_unsigned(),
        first_at: Timestamp::from_millis(row.get(5)?),
        last_at: Timestamp::from_millis(row.get(6)?),
    })
}
