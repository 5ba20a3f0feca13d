//! Retention: removes old runs, then the oldest until the database is small enough.
//!
//! A run that may still be needed is never removed: an open run whose process may be alive, a run
//! with deferred work, a halted run that is not old, and the run that wrote last. A clock that
//! jumps must not cost data: the newest runs stay whatever their age, and what looks old after a
//! jump is kept for one more day.

use crate::{Cleaned, Journal, ProcessId, RunState, StoreError};
use backstop_core::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many runs are removed in one transaction, so that no writer waits long.
const BATCH_RUNS: usize = 50;

/// How many pages are freed in one transaction.
const BATCH_PAGES: u32 = 2000;

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long a run is kept.
    pub keep: Duration,
    /// The largest size of the database, in bytes.
    pub max_bytes: u64,
    /// How many of the newest runs are never removed for their age.
    pub runs_min: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep: 30 * DAY, max_bytes: 1 << 30, runs_min: 100 }
    }
}

/// A run that may be removed.
struct Candidate {
    n: i64,
    version: i64,
    last_at: Timestamp,
    among_newest: bool,
    halted: bool,
}

impl Journal {
    /// Removes old runs, oldest first, and frees the space. `alive` says whether a process may be
    /// alive.
    pub fn clean(
        &self,
        retention: &Retention,
        alive: &dyn Fn(&ProcessId) -> bool,
    ) -> Result<Cleaned, StoreError> {
        self.clean_now(retention, alive, true)
    }

    /// Cleans up if the last time was a day ago or more. Otherwise takes one small read, and
    /// returns `None`.
    pub fn clean_if_due(
        &self,
        retention: &Retention,
        alive: &dyn Fn(&ProcessId) -> bool,
    ) -> Result<Option<Cleaned>, StoreError> {
        let now = self.now();
        let last = self.db.read(|conn| Ok(cleaned_at(conn)?))?;
        // A clock that was set back leaves a time in the future: do not wait for that.
        let away = last.map_or(DAY, |last| now.since(last).max(last.since(now)));
        if away < DAY {
            return Ok(None);
        }
        let claimed = self.write(false, |tx| {
            if cleaned_at(tx)? != last {
                return Ok(false);
            }
            tx.execute(
                "INSERT INTO meta (key, value) VALUES ('cleaned_at', ?1) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [now.as_millis()],
            )?;
            Ok(true)
        })?;
        if !claimed {
            return Ok(None);
        }
        // A long pause may also be a clock that jumped: then only the size counts today.
        self.clean_now(retention, alive, away < retention.keep).map(Some)
    }

    fn clean_now(
        &self,
        retention: &Retention,
        alive: &dyn Fn(&ProcessId) -> bool,
        by_age: bool,
    ) -> Result<Cleaned, StoreError> {
        let mut cleaned = Cleaned { bytes_before: self.db.bytes(), ..Cleaned::default() };
        let now = self.now();
        let candidates = self.candidates(retention.runs_min, alive)?;
        let old = |run: &Candidate| now.since(run.last_at) > retention.keep;
        let (aged, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|run| by_age && !run.among_newest && old(run));
        for batch in aged.chunks(BATCH_RUNS) {
            self.remove(batch, &mut cleaned)?;
        }
        let rest: Vec<_> = rest.into_iter().filter(|run| !run.halted || old(run)).collect();
        for batch in rest.chunks(BATCH_RUNS) {
            if self.used_bytes()? <= retention.max_bytes {
                break;
            }
            self.remove(batch, &mut cleaned)?;
        }
        self.remove_leftovers(&mut cleaned)?;
        self.give_space_back()?;
        cleaned.bytes_after = self.db.bytes();
        Ok(cleaned)
    }

    /// The runs that may be removed, oldest first.
    fn candidates(
        &self,
        runs_min: u32,
        alive: &dyn Fn(&ProcessId) -> bool,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.db.read(|conn| {
            let mut named = conn.prepare("SELECT run FROM deferred")?;
            let named: HashSet<String> =
                named.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let wrote_last: Option<i64> = conn
                .query_row("SELECT run FROM events ORDER BY position DESC LIMIT 1", [], |row| row.get(0))
                .optional()?;
            let newest: i64 = match runs_min {
                0 => i64::MAX,
                _ => conn
                    .query_row(
                        "SELECT n FROM runs ORDER BY n DESC LIMIT 1 OFFSET ?1",
                        [runs_min - 1],
                        |row| row.get(0),
                    )
                    .optional()?
                    .unwrap_or(i64::MIN),
            };
            let mut statement = conn.prepare(
                "SELECT n, version, state, host_pid, host_start, coalesce(ended_at, started_at), id \
                 FROM runs ORDER BY n",
            )?;
            let mut rows = statement.query([])?;
            let mut candidates = Vec::new();
            while let Some(row) = rows.next()? {
                let state: String = row.get(2)?;
                let process = ProcessId { pid: row.get(3)?, start: row.get::<_, i64>(4)?.cast_unsigned() };
                let n: i64 = row.get(0)?;
                let id: String = row.get(6)?;
                let open = state == RunState::Open.name();
                if (open && alive(&process)) || Some(n) == wrote_last || named.contains(&id) {
                    continue;
                }
                candidates.push(Candidate {
                    n,
                    version: row.get(1)?,
                    last_at: Timestamp::from_millis(row.get(5)?),
                    among_newest: n >= newest,
                    halted: state == RunState::Halted.name(),
                });
            }
            Ok(candidates)
        })
    }

    /// Removes runs that have not changed since they were read.
    fn remove(&self, batch: &[Candidate], cleaned: &mut Cleaned) -> Result<(), StoreError> {
        let (runs, events) = self.write(false, |tx| {
            let (mut runs, mut events) = (0, 0);
            for run in batch {
                let gone = tx.execute(
                    "DELETE FROM runs WHERE n = ?1 AND version = ?2 \
                     AND id NOT IN (SELECT run FROM deferred)",
                    [run.n, run.version],
                )?;
                if gone == 1 {
                    runs += 1;
                    events += tx.execute("DELETE FROM events WHERE run = ?1", [run.n])?;
                    tx.execute("DELETE FROM children WHERE run = ?1", [run.n])?;
                    tx.execute("DELETE FROM outputs WHERE run = ?1", [run.n])?;
                }
            }
            Ok((runs, events))
        })?;
        cleaned.runs += runs;
        cleaned.events += events as u64;
        Ok(())
    }

    /// Removes rows that belong to no run.
    fn remove_leftovers(&self, cleaned: &mut Cleaned) -> Result<(), StoreError> {
        cleaned.events += self.write(false, |tx| {
            tx.execute(
                "DELETE FROM children WHERE run NOT IN (SELECT n FROM runs WHERE state <> 'ended')",
                [],
            )?;
            tx.execute("DELETE FROM outputs WHERE run NOT IN (SELECT n FROM runs)", [])?;
            Ok(tx.execute("DELETE FROM events WHERE run NOT IN (SELECT n FROM runs)", [])?)
        })? as u64;
        Ok(())
    }

    fn used_bytes(&self) -> Result<u64, StoreError> {
        self.db.read(|conn| {
            let pages =
                pragma(conn, "PRAGMA page_count")?.saturating_sub(pragma(conn, "PRAGMA freelist_count")?);
            Ok(pages * pragma(conn, "PRAGMA page_size")?)
        })
    }

    /// Shrinks the file by its free pages, and empties the log if no reader uses it.
    fn give_space_back(&self) -> Result<(), StoreError> {
        self.db.read(|conn| {
            let mut free = pragma(conn, "PRAGMA freelist_count")?;
            while free > 0 {
                let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({BATCH_PAGES})"))?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                let left = pragma(conn, "PRAGMA freelist_count")?;
                if left >= free {
                    break;
                }
                free = left;
            }
            Ok(())
        })?;
        self.db.empty_log()
    }
}

fn pragma(conn: &Connection, sql: &str) -> rusqlite::Result<u64> {
    Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
}

fn cleaned_at(conn: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let found: Option<i64> =
        conn.query_row("SELECT value FROM meta WHERE key = 'cleaned_at'", [], |row| row.get(0)).optional()?;
    Ok(found.map(Timestamp::from_millis))
}
