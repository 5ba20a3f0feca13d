//! Cached results of read-only operations, by the hash of everything that they depend on.

use super::LimitStore;
use crate::StoreError;
use backstop_core::Timestamp;
use rusqlite::{OptionalExtension, params};
use std::time::Duration;

/// The size limit of all cached results together.
const RESULTS_BYTES_MAX: i64 = 64 << 20;

/// A cached result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The time at which it was produced.
    pub at: Timestamp,
}

impl LimitStore {
    /// A cached result that is not older than `at_most`.
    pub fn result(&self, key: &str, at_most: Duration) -> Result<Option<KeptResult>, StoreError> {
        let now = self.now();
        let found = self.db.read(|conn| {
            let found =
                conn.query_row("SELECT stdout, stderr, at FROM results WHERE key = ?1", [key], |row| {
                    Ok(KeptResult {
                        stdout: row.get(0)?,
                        stderr: row.get(1)?,
                        at: Timestamp::from_millis(row.get(2)?),
                    })
                });
            Ok(found.optional()?)
        })?;
        // A result from the future was stored under a wrong clock: its age is unknown.
        let fresh = found.filter(|result| result.at <= now && now.since(result.at) <= at_most);
        if fresh.is_some() {
            self.db.write_one(None, |conn| {
                conn.execute("UPDATE results SET used_at = ?2 WHERE key = ?1", params![key, now.as_millis()])
            })?;
        }
        Ok(fresh)
    }

    /// Caches a result. Those not used for longest are removed to make room; a result larger than
    /// the limit is not stored.
    pub fn keep_result(&self, key: &str, stdout: &[u8], stderr: &[u8]) -> Result<bool, StoreError> {
        let bytes = i64::try_from(stdout.len() + stderr.len()).unwrap_or(i64::MAX);
        if bytes > RESULTS_BYTES_MAX / 4 {
            return Ok(false);
        }
        let now = self.now().as_millis();
        self.db.write(None, false, |tx| {
            tx.execute(
                "INSERT INTO results (key, stdout, stderr, at, used_at, bytes) VALUES (?1, ?2, ?3, ?4, ?4, ?5) \
                 ON CONFLICT (key) DO UPDATE SET stdout = ?2, stderr = ?3, at = ?4, used_at = ?4, bytes = ?5",
                params![key, stdout, stderr, now, bytes],
            )?;
            tx.execute(
                "DELETE FROM results WHERE key IN (SELECT key FROM (SELECT key, sum(bytes) OVER \
                 (ORDER BY used_at DESC, key) AS above FROM results) WHERE above > ?1)",
                [RESULTS_BYTES_MAX],
            )?;
            Ok(true)
        })
    }
}
