//! Lessons of campaigns: what failed, what was tried, what cured it and what it cost.
//!
//! A lesson belongs to a run and a task, so that writing it again changes nothing. The oldest go
//! when there are too many.

use crate::masked::mask_text;
use crate::summary::{parsed, worded};
use crate::{Journal, StoreError};
use backstop_core::{Reason, RunId, SafeText, Timestamp};
use rusqlite::{Row, params};

/// How many lessons a project keeps.
const LESSONS_MAX: i64 = 2000;

/// What was learned from the failures of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// The run.
    pub run: RunId,
    /// The task: its seq and slug.
    pub task: SafeText,
    /// The failure without its variable parts.
    pub signature: SafeText,
    /// Its reason.
    pub reason: Reason,
    /// The files of the task.
    pub files: Vec<String>,
    /// What was tried.
    pub tried: SafeText,
    /// What cured it; nothing where the task was blocked.
    pub cure: Option<SafeText>,
    /// How many attempts it took.
    pub attempts: u32,
    /// How long they took together.
    pub cost_ms: u64,
    /// When it was learned.
    pub at: Timestamp,
}

impl Lesson {
    /// Whether it may help with a failure of this signature, or with work on one of these files.
    pub fn is_about(&self, signature: Option<&str>, files: &[String]) -> bool {
        signature.is_some_and(|known| known == self.signature.raw())
            || files.iter().any(|file| self.files.contains(file))
    }
}

impl Journal {
    /// Stores lessons, with secrets masked. Those of the same run and task are replaced.
    pub fn keep_lessons(&self, lessons: &[Lesson]) -> Result<(), StoreError> {
        if lessons.is_empty() {
            return Ok(());
        }
        let masked = |text: &SafeText| mask_text(&self.redactor, text).raw().to_owned();
        self.write(false, |tx| {
            for lesson in lessons {
                tx.execute(
                    "INSERT OR REPLACE INTO lessons \
                     (run, task, signature, reason, files, tried, cure, attempts, cost_ms, at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                    params![
                        lesson.run.to_string(),
                        masked(&lesson.task),
                        masked(&lesson.signature),
                        lesson.reason.code(),
                        serde_json::Value::from(lesson.files.clone()).to_string(),
                        masked(&lesson.tried),
                        lesson.cure.as_ref().map(masked),
                        lesson.attempts,
                        i64::try_from(lesson.cost_ms).unwrap_or(i64::MAX),
                        lesson.at.as_millis(),
                    ],
                )?;
            }
            let newest = tx.last_insert_rowid();
            tx.execute("DELETE FROM lessons WHERE id <= ?1", [newest - LESSONS_MAX])?;
            Ok(())
        })
    }

    /// The newest lessons first, at most so many.
    pub fn lessons(&self, limit: u32) -> Result<Vec<Lesson>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT run, task, signature, reason, files, tried, cure, attempts, cost_ms, at \
                 FROM lessons ORDER BY id DESC LIMIT ?1",
            )?;
            let rows = statement.query_map([limit], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Lesson> {
    let files: String = row.get(4)?;
    let cost: i64 = row.get(8)?;
    Ok(Lesson {
        run: parsed(row, 0)?,
        task: SafeText::new(row.get::<_, String>(1)?),
        signature: SafeText::new(row.get::<_, String>(2)?),
        reason: worded(row, 3, Reason::from_code)?,
        files: serde_json::from_str(&files).unwrap_or_default(),
        tried: SafeText::new(row.get::<_, String>(5)?),
        cure: row.get::<_, Option<String>>(6)?.map(SafeText::new),
        attempts: row.get(7)?,
        cost_ms: u64::try_from(cost).unwrap_or(0),
        at: Timestamp::from_millis(row.get(9)?),
    })
}
