//! What is remembered of an agent's session: repeated faults, and whether its turn was held.

use super::HookStore;
use crate::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use std::time::Duration;

/// Sessions without activity for this long are removed.
const SESSION_KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many sessions are kept.
const SESSIONS_MAX: i64 = 2_000;

impl HookStore {
    /// Counts a fault of a session; returns how many in a row it had.
    pub fn note_streak(&self, session: &str, signature: &str) -> Result<u32, StoreError> {
        let now = self.now().as_millis();
        let (session, signature) = (self.redactor.redact(session), self.redactor.redact(signature));
        self.db.write(None, false, |conn| {
            trim(conn, now)?;
            Ok(conn.query_row(
                "INSERT INTO streaks (session, signature, count, updated_at) VALUES (?1, ?2, 1, ?3) \
                 ON CONFLICT (session) DO UPDATE SET count = CASE WHEN signature = ?2 THEN min(count + 1, 1000000) ELSE 1 END, \
                 signature = ?2, updated_at = ?3 RETURNING count",
                params![session, signature, now],
                |row| row.get(0),
            )?)
        })
    }

    /// Takes the right to hold a session's turn. Once granted, the next request within `window` is
    /// refused; the one after that is granted again.
    pub fn take_hold(&self, session: &str, window: Duration) -> Result<bool, StoreError> {
        let now = self.now();
        let session = self.redactor.redact(session).into_owned();
        self.db.write(None, false, |tx| {
            let at: Option<i64> = tx
                .query_row("SELECT at FROM held WHERE session = ?1", [&session], |row| row.get(0))
                .optional()?;
            let held = at.is_some_and(|at| now.since(backstop_core::Timestamp::from_millis(at)) < window);
            trim(tx, now.as_millis())?;
            if held {
                tx.execute("DELETE FROM held WHERE session = ?1", [&session])?;
            } else {
                tx.execute(
                    "INSERT INTO held (session, at) VALUES (?1, ?2) ON CONFLICT (session) DO UPDATE SET at = ?2",
                    params![session, now.as_millis()],
                )?;
            }
            Ok(!held)
        })
    }

    /// Removes a session that is over.
    pub fn end_session(&self, session: &str) -> Result<(), StoreError> {
        let now = self.now().as_millis();
        let session = self.redactor.redact(session).into_owned();
        self.db.write(None, false, |tx| {
            tx.execute("DELETE FROM streaks WHERE session = ?1", [&session])?;
            tx.execute("DELETE FROM held WHERE session = ?1", [&session])?;
            trim(tx, now)?;
            Ok(())
        })
    }
}

/// Removes sessions without recent activity, once there are many.
fn trim(conn: &Connection, now: i64) -> rusqlite::Result<()> {
    let many: i64 =
        conn.query_row("SELECT (SELECT count(*) FROM streaks) + (SELECT count(*) FROM held)", [], |row| {
            row.get(0)
        })?;
    if many <= SESSIONS_MAX {
        return Ok(());
    }
    let old = now.saturating_sub(i64::try_from(SESSION_KEEP.as_millis()).unwrap_or(i64::MAX));
    conn.execute("DELETE FROM streaks WHERE updated_at < ?1", [old])?;
    conn.execute("DELETE FROM held WHERE at < ?1", [old])?;
    let most = SESSIONS_MAX / 2;
    conn.execute(
        "DELETE FROM streaks WHERE session IN (SELECT session FROM streaks ORDER BY updated_at DESC LIMIT -1 OFFSET ?1)",
        [most],
    )?;
    conn.execute(
        "DELETE FROM held WHERE session IN (SELECT session FROM held ORDER BY at DESC LIMIT -1 OFFSET ?1)",
        [most],
    )?;
    Ok(())
}
