//! The tasks of other programs that reported errors.

use crate::{JSON_SCHEMA, Style, View, duration, table};
use backstop_core::{RunId, TaskState, TaskStatus, Timestamp};
use serde_json::{Value, json};

/// How much of an id is shown.
const TASK_CHARS_MAX: usize = 60;

/// Tasks that reported errors.
#[derive(Debug, Clone)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskState>,
    /// Whether one was asked for by its id.
    pub is_one: bool,
    /// The time.
    pub now: Timestamp,
}

impl View for TaskList {
    fn text(&self, _: Style) -> String {
        if self.tasks.is_empty() {
            return "no task of this project has reported an error\n".to_owned();
        }
        let rows: Vec<Vec<String>> = self.tasks.iter().map(|task| row(task, self.now)).collect();
        let mut text = table(&["TASK", "STATUS", "REASON", "SEVERITY", "ATTEMPT", "NEXT", "RUN"], &rows);
        if let (true, [only]) = (self.is_one, self.tasks.as_slice()) {
            text.push_str(&format!("because {}\n", only.record.why.line(300)));
        }
        text
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self.tasks.iter().map(task_json).collect();
        json!({ "schema": JSON_SCHEMA, "tasks": rows })
    }
}

fn row(task: &TaskState, now: Timestamp) -> Vec<String> {
    let record = &task.record;
    let next = match (record.status, record.retry_at) {
        (TaskStatus::Retrying, Some(at)) => match at.since(now) {
            left if left.is_zero() => "due".to_owned(),
            left => format!("in {}", duration(left)),
        },
        _ => "-".to_owned(),
    };
    vec![
        task.id.line(TASK_CHARS_MAX),
        record.status.name().to_owned(),
        record.reason.to_string(),
        record.severity.to_string(),
        format!("{}/{}", record.attempt, record.of),
        next,
        record.run.map_or_else(|| "-".to_owned(), |run| run.to_string()),
    ]
}

fn task_json(task: &TaskState) -> Value {
    let record = &task.record;
    let context = record.context.as_ref().and_then(|text| serde_json::from_str::<Value>(text.raw()).ok());
    json!({
        "task_id": task.id, "status": record.status.name(), "reason": record.reason,
        "error_type": record.reason.class(), "severity": record.severity, "attempt": record.attempt,
        "of": record.of, "retry_at": record.retry_at, "run": record.run, "why": record.why,
        "context": context.unwrap_or(Value::Null), "first_at": task.first_at, "updated_at": task.updated_at,
    })
}

/// A task whose error was resolved.
#[derive(Debug, Clone)]
pub struct TaskResolved {
    /// The id that was given.
    pub given: String,
    /// The task as it was before.
    pub before: TaskState,
    /// The run that recorded it.
    pub run: RunId,
}

impl View for TaskResolved {
    fn text(&self, _: Style) -> String {
        format!("{} is resolved; its attempts are counted anew\n", self.before.id.line(TASK_CHARS_MAX))
    }

    fn json(&self) -> Value {
        let before = &self.before.record;
        json!({
            "schema": JSON_SCHEMA, "task_id": self.given, "status": TaskStatus::Resolved.name(),
            "was": before.status.name(), "attempt": before.attempt, "run": self.run,
        })
    }
}
