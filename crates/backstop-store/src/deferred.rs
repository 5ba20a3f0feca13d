//! Deferred work: operations put aside until a condition is gone.
//!
//! The same command in the same folder is one row, however often it was deferred. A command that
//! contains a secret is stored with the secret masked, and marked as not runnable from here.

use crate::summary::{parsed, worded};
use crate::{Deferred, DeferredId, DeferredWork, Journal, StoreError};
use backstop_core::{Reason, SafeText, Timestamp};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, params};

const COLUMNS: &str =
    "id, run, argv, folder, reason, until, runnable, count, first_at, last_at, is_task, address, offered";

impl Journal {
    /// Defers work. The same command in the same folder is counted, not stored twice.
    pub fn defer(&self, work: &DeferredWork) -> Result<Deferred, StoreError> {
        let argv = self.redactor.redact_arguments(&work.argv);
        let folder = self.redactor.redact(&work.folder);
        let runnable = work.whole && !work.is_task && argv == work.argv && folder == work.folder;
        let now = self.now().as_millis();
        let words = serde_json::Value::from(argv).to_string();
        let until = self.mask_text(&work.until);
        self.write(false, |tx| {
            let values =
                params![
                work.run.to_string(), words, folder, work.reason.code(), until.raw(), runnable, now, work.is_task,
                work.address
            ];
            let counted = tx.query_row(
                &format!(
                    "UPDATE deferred SET run = ?1, reason = ?4, until = ?5, runnable = runnable AND ?6, \
                     count = count + 1, last_at = ?7, is_task = ?8, address = ?9, offered = 0 WHERE argv = ?2 AND folder = ?3 RETURNING {COLUMNS}"
                ),
                values,
                read,
            );
            if let Some(counted) = counted.optional()? {
                return Ok(counted);
            }
            let sql = format!(
                "INSERT INTO deferred (run, argv, folder, reason, until, runnable, count, first_at, last_at, \
                 is_task, address) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?7, ?8, ?9) RETURNING {COLUMNS}"
            );
            Ok(tx.query_row(&sql, values, read)?)
        })
    }

    /// All deferred work, oldest first.
    pub fn deferred(&self) -> Result<Vec<Deferred>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM deferred ORDER BY id"))?;
            let rows = statement.query_map([], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The number of rows of deferred work.
    pub fn deferred_count(&self) -> Result<u32, StoreError> {
        self.db.read(|conn| Ok(conn.query_row("SELECT count(*) FROM deferred", [], |row| row.get(0))?))
    }

    /// Remembers that this work was offered to a person. Returns those of `ids` that were not
    /// offered before: of two processes that offer the same work, only one may.
    pub fn mark_offered(&self, ids: &[DeferredId]) -> Result<Vec<DeferredId>, StoreError> {
        self.write(false, |tx| {
            let mut marked = Vec::new();
            for id in ids {
                let sql = "UPDATE deferred SET offered = 1 WHERE id = ?1 AND offered = 0";
                if tx.execute(sql, [id.0])? == 1 {
                    marked.push(*id);
                }
            }
            Ok(marked)
        })
    }

    /// Removes a deferred task; returns whether there was one.
    pub fn drop_deferred_task(&self, task: &str) -> Result<bool, StoreError> {
        let words = serde_json::Value::from(self.redactor.redact_arguments(&[task.to_owned()])).to_string();
        self.write_one(|conn| {
            Ok(conn.execute("DELETE FROM deferred WHERE is_task AND argv = ?1", [&words])? > 0)
        })
    }

    /// Removes deferred work; returns whether there was any with this id.
    pub fn drop_deferred(&self, id: DeferredId) -> Result<bool, StoreError> {
        self.write_one(|conn| Ok(conn.execute("DELETE FROM deferred WHERE id = ?1", [id.0])? == 1))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Deferred> {
    let words: String = row.get(2)?;
    let argv = serde_json::from_str(&words)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(2, Type::Text, error.into()))?;
    let until: String = row.get(5)?;
    Ok(Deferred {
        id: DeferredId(row.get(0)?),
        work: DeferredWork {
            run: parsed(row, 1)?,
            argv,
            folder: row.get(3)?,
            reason: worded(row, 4, Reason::from_code)?,
            until: SafeText::new(until),
            whole: row.get(6)?,
            is_task: row.get(10)?,
            address: row.get(11)?,
        },
        runnable: row.get(6)?,
        count: row.get(7)?,
        first_at: Timestamp::from_millis(row.get(8)?),
        last_at: Timestamp::from_millis(row.get(9)?),
        offered: row.get(12)?,
    })
}
