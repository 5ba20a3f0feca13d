//! Lost runs: runs whose Backstop process is gone, and the child processes that it left behind.
//!
//! A process is identified by its id and its start time, because ids are reused. Nothing here
//! checks or ends processes: the caller says which ones are alive.

use crate::error::TransactionError;
use crate::row::append;
use crate::summary::{COLUMNS, RunRow, read};
use crate::{Journal, ProcessId, StoreError};
use backstop_core::{EventKind, Outcome, RunId, SafeText};
use rusqlite::{Connection, OptionalExtension};

/// A process that an attempt has started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Child {
    /// The operation, if the run has several.
    pub operation: Option<SafeText>,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot.
    pub start: u64,
    /// The process group.
    pub group: i32,
}

/// A run that has not ended, although the process that wrote it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRun {
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: Option<SafeText>,
    /// The attempt in progress, counted from 1; the latest if there were several.
    pub attempt: Option<u32>,
    /// The child processes that may still run.
    pub children: Vec<Child>,
    /// The process that is gone.
    pub process: ProcessId,
    version: u64,
}

impl Journal {
    /// The open runs whose process is not `alive`, oldest first. Takes one look into a small index
    /// if there are none.
    pub fn lost_runs(&self, alive: &dyn Fn(&ProcessId) -> bool) -> Result<Vec<LostRun>, StoreError> {
        let mut lost = Vec::new();
        for row in self.open_rows()?.into_iter().filter(|row| !alive(&row.run.process)) {
            let (attempts, children) =
                self.db.read(|conn| Ok((open_attempts(conn, row.n)?, children(conn, row.n)?)))?;
            lost.push(LostRun {
                run: row.run.id,
                operation: row.run.operation,
                attempt: attempts.last().map(|(_, attempt)| *attempt),
                children,
                process: row.run.process,
                version: row.run.events,
            });
        }
        Ok(lost)
    }

    /// Ends a lost run: records `attempt.lost` for every attempt in progress, and `run.ended` with
    /// [`Outcome::Lost`]. Returns false and writes nothing if another process was faster or the run
    /// has gone on.
    pub fn close_lost(&self, lost: &LostRun) -> Result<bool, StoreError> {
        let at = self.now();
        self.write(false, |tx| {
            let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1 AND version = ?2 AND state = 'open'");
            let found = tx.query_row(&sql, (lost.run.to_string(), lost.version.cast_signed()), read);
            let Some(mut row) = found.optional()? else { return Ok(false) };
            let events = self.mask(ending(tx, &row)?)?;
            append(tx, &mut row, events, at)?;
            Ok(true)
        })
    }
}

/// The events that end a run whose process is gone.
fn ending(conn: &Connection, row: &RunRow) -> Result<Vec<EventKind>, TransactionError> {
    let mut kinds: Vec<EventKind> = open_attempts(conn, row.n)?
        .into_iter()
        .map(|(operation, attempt)| EventKind::AttemptLost {
            operation,
            attempt,
            why: SafeText::new(format!("the Backstop process {} is gone", row.run.process.pid)),
            delivery: None,
        })
        .collect();
    let last: Option<i64> =
        conn.query_row("SELECT max(at) FROM events WHERE run = ?1", [row.n], |found| found.get(0))?;
    let known = last.unwrap_or_default().saturating_sub(row.run.started_at.as_millis());
    kinds.push(EventKind::RunEnded {
        outcome: Outcome::Lost,
        reason: row.run.reason,
        attempts: row.run.attempts,
        // The time until its last event: when it ended is unknown.
        duration_ms: u64::try_from(known).unwrap_or(0),
        exit: None,
        next: None,
    });
    Ok(kinds)
}

/// The attempts of a run that began and did not end, in order.
fn open_attempts(conn: &Connection, n: i64) -> Result<Vec<(SafeText, u32)>, TransactionError> {
    let mut statement = conn.prepare(
        "SELECT body FROM events WHERE run = ?1 \
         AND kind IN ('attempt.started', 'attempt.finished', 'attempt.lost') ORDER BY seq",
    )?;
    let mut rows = statement.query([n])?;
    let mut open: Vec<(SafeText, u32)> = Vec::new();
    while let Some(row) = rows.next()? {
        let body: String = row.get(0)?;
        match serde_json::from_str(&body) {
            Ok(EventKind::AttemptStarted { operation, attempt }) => open.push((operation, attempt)),
            Ok(
                EventKind::AttemptFinished { operation, attempt, .. }
                | EventKind::AttemptLost { operation, attempt, .. },
            ) => open.retain(|known| *known != (operation.clone(), attempt)),
            // An unreadable event is reported when the run is loaded; it must not keep a lost run
            // open for ever.
            _ => {}
        }
    }
    Ok(open)
}

fn children(conn: &Connection, n: i64) -> rusqlite::Result<Vec<Child>> {
    let mut statement =
        conn.prepare("SELECT attempt, pid, start, process_group, operation FROM children WHERE run = ?1")?;
    let rows = statement.query_map([n], |row| {
        Ok(Child {
            attempt: row.get(0)?,
            pid: row.get(1)?,
            start: row.get::<_, i64>(2)?.cast_unsigned(),
            group: row.get(3)?,
            operation: row.get::<_, Option<String>>(4)?.map(SafeText::new),
        })
    })?;
    rows.collect()
}
