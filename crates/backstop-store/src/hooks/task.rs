//! Tasks whose errors were reported: how often each has failed lately, and how it stands.

use super::HookStore;
use crate::StoreError;
use crate::summary::{parsed, worded};
use backstop_core::{Reason, RunId, SafeText, Severity, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// How many tasks are remembered; the ones that were not heard of for longest go first.
const TASKS_MAX: u32 = 5_000;
/// How many failures of one task and reason are counted.
const FAILURES_MAX: u32 = 1_000;

/// How far two looks at the clock may be apart, in milliseconds, without it having been set back.
const CLOCK_SLACK_MS: i64 = 5_000;

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It is tried again.
    Retrying,
    /// It has failed.
    Failed,
    /// It is put aside until a condition is gone.
    Deferred,
    /// It has failed, and what there was of it is used.
    Partial,
    /// Somebody has to say whether it is repeated.
    Unconfirmed,
    /// Somebody said that it is over.
    Resolved,
}

impl TaskStatus {
    const ALL: [Self; 6] =
        [Self::Retrying, Self::Failed, Self::Deferred, Self::Partial, Self::Unconfirmed, Self::Resolved];

    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrying => "retrying",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
            Self::Partial => "partial",
            Self::Unconfirmed => "unconfirmed",
            Self::Resolved => "resolved",
        }
    }
}

/// What is recorded of a task after a report.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// How it stands.
    pub status: TaskStatus,
    /// What it failed of.
    pub reason: Reason,
    /// How bad that is.
    pub severity: Severity,
    /// The attempt that failed, counted from 1.
    pub attempt: u32,
    /// How many attempts there may be.
    pub of: u32,
    /// When it is tried again, where it is.
    pub retry_at: Option<Timestamp>,
    /// The run that recorded the report, where it was recorded.
    pub run: Option<RunId>,
    /// Why that was decided.
    pub why: SafeText,
    /// What the task was doing, as JSON.
    pub context: Option<SafeText>,
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Its id.
    pub id: SafeText,
    /// What was recorded last.
    pub record: TaskRecord,
    /// When it was first heard of.
    pub first_at: Timestamp,
    /// When it was last heard of.
    pub updated_at: Timestamp,
}

const COLUMNS: &str =
    "id, status, reason, severity, attempt, of, retry_at, run, why, context, first_at, updated_at";

impl HookStore {
    /// A task of a project has failed with this reason. `stands` is told which attempt that was,
    /// counted from 1 (those of the same reason within the window count), and says how the task
    /// stands now. All in one transaction: no report is lost and no two are the same attempt.
    pub fn note_failure(
        &self,
        project: &str,
        task: &str,
        reason: Reason,
        window: Duration,
        stands: &mut dyn FnMut(u32) -> TaskRecord,
    ) -> Result<u32, StoreError> {
        let task = self.redactor.redact(task).into_owned();
        self.db.write(None, false, |tx| {
            // Read under the lock: what others have written meanwhile must not seem to lie ahead.
            let now = self.now().as_millis();
            let attempt = count(tx, project, &task, reason, window, now)?;
            self.put(tx, project, &task, &stands(attempt), now)?;
            // A task that is new may be one too many.
            if attempt == 1 {
                forget_old(tx)?;
            }
            Ok(attempt)
        })
    }

    /// The run that recorded a report, where it is not the one that was expected.
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

    /// A task of a project; nothing where it was never heard of.
    pub fn task(&self, project: &str, task: &str) -> Result<Option<TaskState>, StoreError> {
        let task = self.redactor.redact(task).into_owned();
        self.db.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND id = ?2");
            Ok(conn.query_row(&sql, params![project, task], read).optional()?)
        })
    }

    /// The tasks of a project, the latest first.
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

    /// A task is over: its failures count no longer. Gives how it stood; nothing where it was never
    /// heard of.
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

/// Counts one more failure, and those of the same reason before it within the window.
fn count(
    tx: &Connection,
    project: &str,
    task: &str,
    reason: Reason,
    window: Duration,
    now: i64,
) -> rusqlite::Result<u32> {
    let since = now.saturating_sub(i64::try_from(window.as_millis()).unwrap_or(i64::MAX));
    // What lies ahead was written before the clock was set back.
    let ahead = now.saturating_add(CLOCK_SLACK_MS);
    tx.execute(
        "DELETE FROM failures WHERE project = ?1 AND task = ?2 AND (at <= ?3 OR at > ?4)",
        params![project, task, since, ahead],
    )?;
    let known: u32 = tx.query_row(
        "SELECT count(*) FROM failures WHERE project = ?1 AND task = ?2 AND reason = ?3",
        params![project, task, reason.code()],
        |row| row.get(0),
    )?;
    if known < FAILURES_MAX {
        tx.execute(
            "INSERT INTO failures (project, task, reason, at) VALUES (?1, ?2, ?3, ?4)",
            params![project, task, reason.code(), now],
        )?;
    }
    Ok(known.saturating_add(1))
}

/// Keeps the number of tasks within its bound.
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
