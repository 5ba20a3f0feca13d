//! The output of failed attempts: what both streams of a command wrote, in order.
//!
//! A log belongs to its run and is removed with it. All logs of a project together are bounded:
//! the oldest go first.

use crate::masked::mask_text;
use crate::{Journal, RunJournal, StoreError};
use backstop_core::{OutputLog, RunId};
use rusqlite::types::Type;
use rusqlite::{Transaction, params};

/// How many bytes of logs a project has at most.
const LOGS_BYTES_MAX: i64 = 128 << 20;
/// How many logs a project has at most.
const LOGS_MAX: i64 = 2000;

impl RunJournal {
    /// Stores the output of an attempt, with secrets masked. Removes the oldest logs of the project
    /// where there are too many.
    pub fn keep_output(&self, attempt: u32, log: &OutputLog) -> Result<(), StoreError> {
        let (journal, run) = (self.journal(), self.number());
        let mut log = log.clone();
        for part in &mut log.parts {
            part.text = mask_text(&journal.redactor, &part.text);
        }
        let unrecordable = |error: serde_json::Error| StoreError::Unrecordable {
            what: "output".to_owned(),
            file: journal.file().to_owned(),
            why: error.to_string(),
        };
        let body = serde_json::to_string(&log).map_err(unrecordable)?;
        journal.write(false, |tx| {
            tx.execute(
                "INSERT INTO outputs (run, attempt, bytes, body) VALUES (?1, ?2, ?3, ?4)",
                params![run, attempt, i64::try_from(body.len()).unwrap_or(i64::MAX), body],
            )?;
            Ok(remove_oldest(tx)?)
        })
    }
}

/// Removes the oldest logs beyond what a project may have.
fn remove_oldest(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    let newest = tx.last_insert_rowid();
    tx.execute("DELETE FROM outputs WHERE id <= ?1", [newest - LOGS_MAX])?;
    let mut total: i64 = tx.query_row("SELECT sum(bytes) FROM outputs", [], |row| row.get(0))?;
    while total > LOGS_BYTES_MAX {
        let (oldest, bytes): (i64, i64) = tx.query_row(
            "SELECT id, bytes FROM outputs WHERE id < ?1 ORDER BY id LIMIT 1",
            [newest],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        tx.execute("DELETE FROM outputs WHERE id = ?1", [oldest])?;
        total -= bytes;
    }
    Ok(())
}

impl Journal {
    /// The output of a run's attempts, as far as it was kept: the number of each attempt and what
    /// it wrote, in order.
    pub fn outputs(&self, run: RunId) -> Result<Vec<(u32, OutputLog)>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT outputs.attempt, outputs.body FROM outputs JOIN runs ON runs.n = outputs.run \
                 WHERE runs.id = ?1 ORDER BY outputs.id",
            )?;
            let rows = statement.query_map([run.to_string()], |row| {
                let body: String = row.get(1)?;
                let log = serde_json::from_str(&body).map_err(|error| {
                    rusqlite::Error::FromSqlConversionFailure(1, Type::Text, error.into())
                })?;
                Ok((row.get(0)?, log))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
