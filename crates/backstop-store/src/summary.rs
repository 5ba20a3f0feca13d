//! The summary of a run: its row, folded from its events.

use crate::{ProcessId, RunState, RunSummary};
use backstop_core::{Outcome, Reason, SafeText, Timestamp};
use rusqlite::Row;
use rusqlite::types::Type;
use serde::Deserialize;

/// The columns that [`read`] reads, in its order.
pub(crate) const COLUMNS: &str = "n, id, version, state, surface, session, caller, parent, host_pid, host_start, \
     operation, folder, profile, started_at, ended_at, outcome, reason, attempts, exit, duration_ms, next";

/// A run's row, with its number in the table.
#[derive(Debug, Clone)]
pub(crate) struct RunRow {
    pub(crate) n: i64,
    pub(crate) run: RunSummary,
}

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let run = RunSummary {
        id: parsed(row, 1)?,
        events: row.get::<_, i64>(2)?.cast_unsigned(),
        state: worded(row, 3, RunState::from_name)?,
        surface: row.get(4)?,
        session: text(row, 5)?,
        caller: text(row, 6)?,
        parent: optional(row, 7, |text| text.parse().ok())?,
        process: ProcessId { pid: row.get(8)?, start: row.get::<_, i64>(9)?.cast_unsigned() },
        operation: text(row, 10)?,
        folder: text(row, 11)?,
        profile: row.get(12)?,
        started_at: Timestamp::from_millis(row.get(13)?),
        ended_at: row.get::<_, Option<i64>>(14)?.map(Timestamp::from_millis),
        outcome: optional(row, 15, outcome_from_name)?,
        reason: optional(row, 16, Reason::from_code)?,
        attempts: row.get(17)?,
        exit: row.get(18)?,
        duration_ms: row.get::<_, Option<i64>>(19)?.map(i64::cast_unsigned),
        next: text(row, 20)?,
    };
    Ok(RunRow { n: row.get(0)?, run })
}

fn outcome_from_name(name: &str) -> Option<Outcome> {
    let words: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        serde::de::IntoDeserializer::into_deserializer(name);
    Outcome::deserialize(words).ok()
}

/// A column whose text is one of our words.
pub(crate) fn worded<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let found = row.get_ref(column)?;
    read(found.as_str()?).ok_or_else(|| {
        let why = format!("`{}` is not known here", found.as_str().unwrap_or_default().escape_default());
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
    })
}

/// A column whose text is parsed.
pub(crate) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    worded(row, column, |text| text.parse().ok())
}

fn optional<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    if row.get_ref(column)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    worded(row, column, read).map(Some)
}

/// A column of text from outside.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<SafeText>> {
    Ok(row.get::<_, Option<String>>(column)?.map(SafeText::new))
}
