//! Writes events, and the row of their run.
//!
//! The row is a fold of the events: a writer that knows the run's version knows its row, and writes
//! it in the same transaction as the events. Nothing here opens or commits a transaction.

use crate::RunSummary;
use crate::StoreError;
use crate::counted::Numbers;
use crate::error::TransactionError;
use crate::fold::{attempt_of, fold, reason_of};
use crate::masked::Masked;
use crate::summary::RunRow;
use backstop_core::{EVENT_SCHEMA, Event, EventId, EventKind, Outcome, Reason, SafeText, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Inserts the row of a new run, unless its id is taken.
pub(crate) fn insert_run(conn: &Connection, run: &RunSummary) -> rusqlite::Result<Option<RunRow>> {
    let added = conn.execute(
        "INSERT INTO runs (id, version, state, surface, session, caller, parent, host_pid, host_start, operation, \
         folder, profile, started_at, ended_at, outcome, reason, attempts, exit, duration_ms, next) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) \
         ON CONFLICT (id) DO NOTHING",
        params![
            run.id.to_string(),
            run.events.cast_signed(),
            run.state.name(),
            run.surface,
            run.session.as_ref().map(SafeText::raw),
            run.caller.as_ref().map(SafeText::raw),
            run.parent.map(|id| id.to_string()),
            run.process.pid,
            run.process.start.cast_signed(),
            run.operation.as_ref().map(SafeText::raw),
            run.folder.as_ref().map(SafeText::raw),
            run.profile,
            run.started_at.as_millis(),
            run.ended_at.map(Timestamp::as_millis),
            run.outcome.map(Outcome::name),
            run.reason.map(Reason::code),
            run.attempts,
            run.exit,
            run.duration_ms.map(u64::cast_signed),
            run.next.as_ref().map(SafeText::raw),
        ],
    )?;
    Ok((added == 1).then(|| RunRow { n: conn.last_insert_rowid(), run: run.clone() }))
}

/// Updates the row of a run whose version is still `version`; returns whether it was.
fn update_run(conn: &Connection, row: &RunRow, version: u64, moved: bool) -> rusqlite::Result<bool> {
    let run = &row.run;
    let changed = if moved {
        conn.execute(
            "UPDATE runs SET version = ?1, host_pid = ?2, host_start = ?3, attempts = ?4, reason = ?5, state = ?6, \
             operation = ?7, folder = ?8, profile = ?9, started_at = ?10, ended_at = ?11, outcome = ?12, exit = ?13, \
             duration_ms = ?14, next = ?15, parent = ?16 WHERE n = ?17 AND version = ?18",
            params![
                run.events.cast_signed(),
                run.process.pid,
                run.process.start.cast_signed(),
                run.attempts,
                run.reason.map(Reason::code),
                run.state.name(),
                run.operation.as_ref().map(SafeText::raw),
                run.folder.as_ref().map(SafeText::raw),
                run.profile,
                run.started_at.as_millis(),
                run.ended_at.map(Timestamp::as_millis),
                run.outcome.map(Outcome::name),
                run.exit,
                run.duration_ms.map(u64::cast_signed),
                run.next.as_ref().map(SafeText::raw),
                run.parent.map(|id| id.to_string()),
                row.n,
                version.cast_signed(),
            ],
        )?
    } else {
        // Setting `state` would rewrite its index, one more page for each event.
        conn.execute(
            "UPDATE runs SET version = ?1, host_pid = ?2, host_start = ?3, attempts = ?4, reason = ?5 \
             WHERE n = ?6 AND version = ?7",
            params![
                run.events.cast_signed(),
                run.process.pid,
                run.process.start.cast_signed(),
                run.attempts,
                run.reason.map(Reason::code),
                row.n,
                version.cast_signed(),
            ],
        )?
    };
    Ok(changed == 1)
}

/// Appends events to a run whose row this writer knows, and updates the row. Nothing is written if
/// the row is outdated.
pub(crate) fn append(
    tx: &Transaction<'_>,
    row: &mut RunRow,
    masked: Vec<Masked>,
    at: Timestamp,
) -> Result<Vec<Event>, TransactionError> {
    let version = row.run.events;
    let mut moved = false;
    for Masked { kind, .. } in &masked {
        fold(&mut row.run, kind, at);
        moved |= matches!(
            kind,
            EventKind::RunStarted { .. }
                | EventKind::RunEnded { .. }
                | EventKind::RunHalted { .. }
                | EventKind::RunResumed {}
        );
    }
    row.run.events += masked.len() as u64;
    if !update_run(tx, row, version, moved)? {
        let found: Option<i64> = tx
            .query_row("SELECT version FROM runs WHERE n = ?1", [row.n], |found| found.get(0))
            .optional()?;
        let found = found.unwrap_or(0).cast_unsigned();
        return Err(StoreError::Conflict { run: row.run.id, expected: version, found }.into());
    }
    for Masked { kind, .. } in &masked {
        remove_children(tx, row.n, kind)?;
    }
    Ok(insert_events(tx, row, version, masked, at)?)
}

/// Inserts events after the first `before` ones of a run.
pub(crate) fn insert_events(
    conn: &Connection,
    row: &RunRow,
    before: u64,
    masked: Vec<Masked>,
    at: Timestamp,
) -> rusqlite::Result<Vec<Event>> {
    let mut insert = conn.prepare(
        "INSERT INTO events (run, seq, schema, at, kind, reason, attempt, body, counted, ok, ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let mut events = Vec::with_capacity(masked.len());
    for (seq, Masked { kind, body }) in (before + 1..).zip(masked) {
        let Numbers { counted, ok, ms } = Numbers::of(&kind);
        insert.execute(params![
            row.n,
            seq.cast_signed(),
            EVENT_SCHEMA,
            at.as_millis(),
            kind.name(),
            reason_of(&kind).map(Reason::code),
            attempt_of(&kind),
            body,
            counted,
            ok,
            ms,
        ])?;
        events.push(event(&row.run, EVENT_SCHEMA, seq, at, kind));
    }
    Ok(events)
}

/// An event with the fields that it shares with the others of its run.
pub(crate) fn event(run: &RunSummary, schema: u32, seq: u64, at: Timestamp, kind: EventKind) -> Event {
    Event {
        schema,
        id: EventId { run: run.id, seq },
        run: run.id,
        seq,
        at,
        session: run.session.clone(),
        surface: run.surface.clone(),
        caller: run.caller.clone(),
        kind,
    }
}

/// An attempt or a run that has ended has no child processes to look for.
fn remove_children(conn: &Connection, n: i64, kind: &EventKind) -> rusqlite::Result<()> {
    match kind {
        EventKind::AttemptFinished { operation, attempt, .. }
        | EventKind::AttemptLost { operation, attempt, .. } => {
            conn.execute(
                "DELETE FROM children WHERE run = ?1 AND attempt = ?2 AND (operation IS NULL OR operation = ?3)",
                params![n, attempt, operation.raw()],
            )?;
        }
        EventKind::RunEnded { .. } => {
            conn.execute("DELETE FROM children WHERE run = ?1", [n])?;
        }
        _ => {}
    }
    Ok(())
}
