//! Tasks whose errors were reported: how often each has failed lately, and its status.

use super::HookStore;
use crate::summary::{parsed, worded};
use crate::{StoreError, TaskRecord, TaskState, TaskStatus};
use backstop_core::{Reason, RunId, SafeText, Severity, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// How many tasks are kept; those not updated for longest are removed first.
const TASKS_MAX: u32 = 5_000;
/// How many failures of one task and reason are counted.
const FAILURES_MAX: u32 = 1_000;

/// How far apart two readings of the clock may be, in milliseconds, without it having been set
/// back.
const CLOCK_SLACK_MS: i64 = 5_000;

const COLUMNS: &str =
    "id, status, reason, severity, attempt, of, retry_at, run, why, context, first_at, updated_at";

impl HookStore {
    /// Counts a failure of a task with this reason. `stands` is called with the number of the
    /// attempt, counted from 1 (failures within the window whose reason is in `counted` or is this
    /// one count), and returns the new record. All in one transaction: no report is lost, and no
    /// two get the same number.
    pub fn note_failure(
        &self,
        project: &str,
        task: &str,
        reason: Reason,
        counted: &[Reason],
        window: Duration,
        stands: &mut dyn FnMut(u32) -> TaskRecord,
    ) -> Result<u32, StoreError> {
        let task = self.redactor.redact(task).into_owned();
        self.db.write(None, false, |tx| {
            // Read under the lock, so that rows written meanwhile do not seem to be in the future.
            let now = self.now().as_millis();
            let attempt = count(tx, project, &task, reason, counted, window, now)?;
            self.put(tx, project, &task, &stands(attempt), now)?;
            // A new task may exceed the limit.
            if attempt == 1 {
                forget_old(tx)?;
            }
            Ok(attempt)
        })
    }

    /// Sets the run that recorded a report, if it is another one than expected.
    pub fn set_task_run(&self, project: &str, task: &str, run: Option<RunId>) -> Result<(), StoreError> {
        let task = self.redactor.redact(task).into_owned();
        self.db.write_one(None, |conn| {
            conn.execute(
                "UPDATE tasks SET run = ?3 WHERE project = ?1 AND id = ?2",
                params![project, task, run.map(|run| run.to_string())],
            )
        })?;
        Ok(())
    }

    fn put(
        &self,
        tx: &Connection,
        project: &str,
        task: &str,
        record: &TaskRecord,
        now: i64,
    ) -> rusqlite::Result<()> {
        let masked = |text: &SafeText| self.redactor.redact(text.raw()).into_owned();
        tx.execute(
            "INSERT INTO tasks (project, id, status, reason, severity, attempt, of, retry_at, run, why, context, first_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12) ON CONFLICT (project, id) DO UPDATE SET \
             status = ?3, reason = ?4, severity = ?5, attempt = ?6, of = ?7, retry_at = ?8, run = ?9, why = ?10, \
             context = ?11, updated_at = ?12",
            params![
                project,
                task,
                record.status.name(),
                record.reason.code(),
                record.severity.name(),
                record.attempt,
                record.of,
                record.retry_at.map(Timestamp::as_millis),
                record.run.map(|run| run.to_string()),
                masked(&record.why),
                record.context.as_ref().map(masked),
                now,
            ],
        )?;
        Ok(())
    }

    /// A task of a project; `None` if nothing was reported of it.
    pub fn task(&self, project: &str, task: &str) -> Result<Option<TaskState>, StoreError> {
        let task = self.redactor.redact(task).into_owned();
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND id = ?2");
            Ok(conn.query_row(&sql, params![project, task], read).optional()?)
        })
    }

    /// The tasks of a project, latest first.
    pub fn tasks(&self, project: &str, limit: u32) -> Result<Vec<TaskState>, StoreError> {
        self.db.read(|conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM tasks WHERE project = ?1 ORDER BY updated_at DESC, id LIMIT ?2"
            );
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map(params![project, limit], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Resolves a task: its failures no longer count. Returns its last state; `None` if nothing was
    /// reported of it.
    pub fn resolve_task(&self, project: &str, task: &str) -> Result<Option<TaskState>, StoreError> {
        let now = self.now().as_millis();
        let task = self.redactor.redact(task).into_owned();
        self.db.write(None, false, |tx| {
            let sql = format!("SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND id = ?2");
            let before = tx.query_row(&sql, params![project, task], read).optional()?;
            tx.execute(
                "UPDATE tasks SET status = ?3, retry_at = NULL, updated_at = ?4 WHERE project = ?1 AND id = ?2",
                params![project, task, TaskStatus::Resolved.name(), now],
            )?;
            tx.execute("DELETE FROM failures WHERE project = ?1 AND task = ?2", params![project, task])?;
            Ok(before)
        })
    }
}

/// Counts one more failure, and those within the window whose reasons count with it.
fn count(
    tx: &Connection,
    project: &str,
    task: &str,
    reason: Reason,
    counted: &[Reason],
    window: Duration,
    now: i64,
) -> rusqlite::Result<u32> {
    let since = now.saturating_sub(i64::try_from(window.as_millis()).unwrap_or(i64::MAX));
    // A time in the future was written before the clock was set back.
    let ahead = now.saturating_add(CLOCK_SLACK_MS);
    tx.execute(
        "DELETE FROM failures WHERE project = ?1 AND task = ?2 AND (at <= ?3 OR at > ?4)",
        params![project, task, since, ahead],
    )?;
    let mut statement =
        tx.prepare("SELECT reason, count(*) FROM failures WHERE project = ?1 AND task = ?2 GROUP BY reason")?;
    let counts = statement
        .query_map(params![project, task], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?)))?;
    let mut known: u32 = 0;
    for row in counts {
        let (code, count) = row?;
        if code == reason.code() || counted.iter().any(|other| other.code() == code) {
            known = known.saturating_add(count);
        }
    }
    if known < FAILURES_MAX {
        tx.execute(
            "INSERT INTO failures (project, task, reason, at) VALUES (?1, ?2, ?3, ?4)",
            params![project, task, reason.code(), now],
        )?;
    }
    Ok(known.saturating_add(1))
}

/// Removes tasks beyond the limit.
fn forget_old(tx: &Connection) -> rusqlite::Result<()> {
    let tasks: u32 = tx.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))?;
    if tasks > TASKS_MAX {
        tx.execute(
            "DELETE FROM tasks WHERE (project, id) IN (SELECT project, id FROM tasks ORDER BY updated_at LIMIT ?1)",
            [tasks - TASKS_MAX],
        )?;
        tx.execute(
            "DELETE FROM failures WHERE NOT EXISTS \
             (SELECT 1 FROM tasks WHERE tasks.project = failures.project AND tasks.id = failures.task)",
            [],
        )?;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<TaskState> {
    let severities = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];
    let status = |text: &str| TaskStatus::ALL.into_iter().find(|known| known.name() == text);
    let severity = |text: &str| severities.into_iter().find(|known| known.name() == text);
    Ok(TaskState {
        id: SafeText::new(row.get::<_, String>(0)?),
        record: TaskRecord {
            status: worded(row, 1, status)?,
            reason: parsed(row, 2)?,
            severity: worded(row, 3, severity)?,
            attempt: row.get(4)?,
            of: row.get(5)?,
            retry_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
            run: row.get::<_, Option<String>>(7)?.and_then(|run| run.parse().ok()),
            why: SafeText::new(row.get::<_, String>(8)?),
            context: row.get::<_, Option<String>>(9)?.map(SafeText::new),
        },
        first_at: Timestamp::from_millis(row.get(10)?),
        updated_at: Timestamp::from_millis(row.get(11)?),
    })
}
