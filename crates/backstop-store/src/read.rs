//! The read side: runs, events, and the number of recent attempts.

use crate::row::event;
use crate::summary::{COLUMNS, RunRow, read, text};
use crate::{Journal, RunSummary, StoreError};
use backstop_core::{Event, EventKind, Outcome, Reason, Recent, RunId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params_from_iter};

/// Which runs to list. The default lists the newest 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// The largest number of runs.
    pub limit: u32,
    /// Only runs begun at this time or later.
    pub since: Option<Timestamp>,
    /// Only runs that ended so.
    pub outcome: Option<Outcome>,
    /// Only runs with this reason.
    pub reason: Option<Reason>,
    /// Only runs of this surface.
    pub surface: Option<String>,
    /// Only runs that have not ended.
    pub open_only: bool,
    /// Only runs whose operation contains this, ignoring ASCII case.
    pub operation_contains: Option<String>,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            limit: 100,
            since: None,
            outcome: None,
            reason: None,
            surface: None,
            open_only: false,
            operation_contains: None,
        }
    }
}

/// Which events to list. The default lists the first 1000 of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only events recorded at this time or later.
    pub since: Option<Timestamp>,
    /// Only events with this reason.
    pub reason: Option<Reason>,
    /// Only events of this kind, e.g. `error.classified`.
    pub kind: Option<String>,
    /// Only events after this position, as [`Journal::events`] returned it.
    pub after: Option<u64>,
    /// The largest number of events.
    pub limit: u32,
    /// Where there are more, the newest instead of the first; still listed in order.
    pub newest: bool,
}

impl Default for EventFilter {
    fn default() -> Self {
        Self { run: None, since: None, reason: None, kind: None, after: None, limit: 1000, newest: false }
    }
}

impl Journal {
    /// All events of a run, in order; empty if there is no such run.
    pub fn load(&self, run: RunId) -> Result<Vec<Event>, StoreError> {
        let Some(row) = self.row(run)? else { return Ok(Vec::new()) };
        self.db.read(|conn| {
            let mut statement =
                conn.prepare("SELECT schema, seq, at, body FROM events WHERE run = ?1 ORDER BY seq")?;
            let mut rows = statement.query([row.n])?;
            let mut events = Vec::with_capacity(usize::try_from(row.run.events).unwrap_or(0).min(1 << 20));
            while let Some(found) = rows.next()? {
                events.push(self.read_event(&row.run, found)?);
            }
            Ok(events)
        })
    }

    /// One run.
    pub fn run(&self, run: RunId) -> Result<Option<RunSummary>, StoreError> {
        Ok(self.row(run)?.map(|row| row.run))
    }

    /// Runs, newest first.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let mut query = Query::new(format!("SELECT {COLUMNS} FROM runs"));
        query.and("started_at >= ?", filter.since.map(Timestamp::as_millis));
        query.and("outcome = ?", filter.outcome.map(|outcome| outcome.name().to_owned()));
        query.and("reason = ?", filter.reason.map(|reason| reason.code().to_owned()));
        query.and("surface = ?", filter.surface.clone());
        let contains = filter.operation_contains.as_ref().map(|text| text.to_ascii_lowercase());
        query.and("instr(lower(operation), ?) > 0", contains);
        if filter.open_only {
            query.and_always("state = 'open'");
        }
        query.end("ORDER BY n DESC", filter.limit);
        self.db.read(|conn| {
            let mut statement = conn.prepare(&query.sql)?;
            let rows = statement.query_map(params_from_iter(&query.values), |row| Ok(read(row)?.run))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Events with their positions, in the order of their commits. A position is never reused, so a
    /// reader can follow the journal by asking for what comes after the last one.
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<(u64, Event)>, StoreError> {
        let mut query = Query::new(
            "SELECT e.schema, e.seq, e.at, e.body, e.position, r.id, r.surface, r.session, r.caller \
             FROM events AS e CROSS JOIN runs AS r ON r.n = e.run"
                .to_owned(),
        );
        query.and("e.run = (SELECT n FROM runs WHERE id = ?)", filter.run.map(|run| run.to_string()));
        query.and("e.position > ?", filter.after.map(u64::cast_signed));
        query.and("e.at >= ?", filter.since.map(Timestamp::as_millis));
        query.and("e.reason = ?", filter.reason.map(|reason| reason.code().to_owned()));
        query.and("e.kind = ?", filter.kind.clone());
        query.end(
            if filter.newest { "ORDER BY e.position DESC" } else { "ORDER BY e.position" },
            filter.limit,
        );
        self.db.read(|conn| {
            let mut statement = conn.prepare(&query.sql)?;
            let mut rows = statement.query(params_from_iter(&query.values))?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let position = row.get::<_, i64>(4)?.cast_unsigned();
                let run: RunId = crate::summary::parsed(row, 5)?;
                let kind = self.read_kind(run, row)?;
                events.push((
                    position,
                    Event {
                        schema: row.get(0)?,
                        id: backstop_core::EventId { run, seq: row.get::<_, i64>(1)?.cast_unsigned() },
                        run,
                        seq: row.get::<_, i64>(1)?.cast_unsigned(),
                        at: Timestamp::from_millis(row.get(2)?),
                        session: text(row, 7)?,
                        surface: row.get(6)?,
                        caller: text(row, 8)?,
                        kind,
                    },
                ));
            }
            if filter.newest {
                events.reverse();
            }
            Ok(events)
        })
    }

    /// The number of attempts, and of retries among them, from `since` until now, for the retry
    /// budget. Events recorded under a clock that was ahead do not count.
    pub fn recent_attempts(&self, since: Timestamp) -> Result<Recent, StoreError> {
        let now = self.now();
        self.db.read(|conn| {
            let (attempts, retries): (i64, i64) = conn.query_row(
                "SELECT count(*), count(CASE WHEN attempt > 1 THEN 1 END) FROM events \
                 WHERE kind = 'attempt.started' AND at BETWEEN ?1 AND ?2",
                [since.as_millis(), now.as_millis()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            Ok(Recent { attempts: attempts.cast_unsigned(), retries: retries.cast_unsigned() })
        })
    }

    /// The newest events that `has_line` wants, in order: the limit counts those.
    pub fn newest_events(
        &self,
        filter: &EventFilter,
        has_line: impl Fn(&Event) -> bool,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let mut limit = filter.limit;
        loop {
            let mut events = self.events(&EventFilter { newest: true, limit, ..filter.clone() })?;
            let were_all = events.len() < usize::try_from(limit).unwrap_or(usize::MAX);
            events.retain(|(_, event)| has_line(event));
            if events.len() >= wanted || were_all || limit == u32::MAX {
                events.drain(..events.len().saturating_sub(wanted));
                return Ok(events);
            }
            limit = limit.saturating_mul(4);
        }
    }

    pub(crate) fn row(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
            Ok(conn.query_row(&sql, [run.to_string()], read).optional()?)
        })
    }

    /// The open runs, oldest first.
    pub(crate) fn open_rows(&self) -> Result<Vec<RunRow>, StoreError> {
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM runs WHERE state = 'open' ORDER BY n");
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map([], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn read_event(&self, run: &RunSummary, row: &Row<'_>) -> Result<Event, crate::error::TransactionError> {
        let kind = self.read_kind(run.id, row)?;
        let seq = row.get::<_, i64>(1)?.cast_unsigned();
        Ok(event(run, row.get(0)?, seq, Timestamp::from_millis(row.get(2)?), kind))
    }

    fn read_kind(&self, run: RunId, row: &Row<'_>) -> Result<EventKind, crate::error::TransactionError> {
        let body = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
        let kind = serde_json::from_str(body).map_err(|error| {
            let seq = row.get::<_, i64>(1).unwrap_or_default();
            let why = format!("event {run}.{seq} cannot be read: {error}");
            StoreError::Corrupt { file: self.file().to_owned(), why }
        })?;
        Ok(kind)
    }
}

/// A query with only the conditions that were given.
struct Query {
    sql: String,
    values: Vec<Value>,
    begun: bool,
}

impl Query {
    fn new(sql: String) -> Self {
        Self { sql, values: Vec::new(), begun: false }
    }

    fn and_always(&mut self, condition: &str) {
        self.sql.push_str(if self.begun { " AND " } else { " WHERE " });
        self.sql.push_str(condition);
        self.begun = true;
    }

    fn and(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and_always(condition);
            self.values.push(value.into());
        }
    }

    fn end(&mut self, order: &str, limit: u32) {
        self.sql.push(' ');
        self.sql.push_str(order);
        self.sql.push_str(" LIMIT ?");
        self.values.push(Value::from(limit));
    }
}
