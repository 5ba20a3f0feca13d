//! Windows of requests, shared by all processes of a user: a request takes its place in one
//! transaction before it is sent.

use super::LimitStore;
use crate::StoreError;
use backstop_core::guard::GuardKey;
use backstop_core::request_window::{RequestWindow, RequestsLeft, WindowStep};
use rusqlite::{Connection, OptionalExtension, params};

/// How many windows are kept; those not used for longest are removed first.
const WINDOWS_MAX: u32 = 1000;

impl LimitStore {
    /// Takes one of the requests that are left under this key. Gives what is known then.
    pub fn take_request(&self, key: &GuardKey) -> Result<(RequestWindow, WindowStep), StoreError> {
        let key = key.to_string();
        let now = self.now();
        let take = |known| RequestWindow::take(known, now);
        // A provider that names no limit is the usual one, and a request that has to wait changes
        // nothing: both are seen by reading.
        let known = self.db.read(|conn| Ok(find(conn, &key)?))?;
        if known.is_some() {
            let (after, step) = take(known.clone());
            if known.as_ref() == Some(&after) {
                return Ok((after, step));
            }
        }
        self.db.write(None, false, |tx| {
            let known = find(tx, &key)?;
            let (after, step) = take(known.clone());
            if known.as_ref() != Some(&after) {
                keep(tx, &key, &after, now.as_millis())?;
            }
            Ok((after, step))
        })
    }

    /// Learns from the answer to the request of this number.
    pub fn learn_window(
        &self,
        key: &GuardKey,
        number: u64,
        said: Option<RequestsLeft>,
    ) -> Result<RequestWindow, StoreError> {
        let key = key.to_string();
        let now = self.now();
        self.db.write(None, false, |tx| {
            let after = RequestWindow::learn(find(tx, &key)?, number, said, now);
            keep(tx, &key, &after, now.as_millis())?;
            Ok(after)
        })
    }
}

/// What cannot be read any more is not known.
fn find(conn: &Connection, key: &str) -> rusqlite::Result<Option<RequestWindow>> {
    let mut statement = conn.prepare("SELECT state FROM windows WHERE provider = ?1")?;
    let state: Option<String> = statement.query_row([key], |row| row.get(0)).optional()?;
    Ok(state.and_then(|state| serde_json::from_str(&state).ok()))
}

fn keep(conn: &Connection, key: &str, window: &RequestWindow, now: i64) -> rusqlite::Result<()> {
    let state = serde_json::to_string(window).unwrap_or_default();
    let mut statement = conn.prepare(
        "INSERT INTO windows (provider, state, updated_at) VALUES (?1, ?2, ?3) \
         ON CONFLICT (provider) DO UPDATE SET state = ?2, updated_at = ?3",
    )?;
    statement.execute(params![key, state, now])?;
    if window.is_asking() {
        conn.execute(
            "DELETE FROM windows WHERE provider IN \
             (SELECT provider FROM windows ORDER BY updated_at DESC LIMIT -1 OFFSET ?1)",
            [WINDOWS_MAX],
        )?;
    }
    Ok(())
}
