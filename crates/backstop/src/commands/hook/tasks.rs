//! `backstop hook status` and `backstop hook resolved`: the tasks whose errors were reported.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_hook::tasks;
use backstop_report::{JSON_SCHEMA, duration, table, to_json};
use backstop_store::{TaskState, TaskStatus};
use serde_json::{Value, json};

/// How much of an id is shown.
const TASK_CHARS_MAX: usize = 60;

pub(super) fn status(task: Option<&str>, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let tasks = match task {
        Some(task) => vec![tasks::find(&project, task)?],
        None => tasks::list(&project)?,
    };
    if json {
        let rows: Vec<Value> = tasks.iter().map(task_json).collect();
        return terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "tasks": rows }))));
    }
    if tasks.is_empty() {
        return terminal::print("no task of this project has reported an error\n");
    }
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    let mut text = table(&["TASK", "STATUS", "REASON", "SEVERITY", "ATTEMPT", "NEXT", "RUN"], &rows);
    if let (Some(_), [only]) = (task, tasks.as_slice()) {
        text.push_str(&format!("because {}\n", only.record.why.line(300)));
    }
    terminal::print(&text)
}

pub(super) fn resolved(task: &str, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let (before, run) = tasks::resolve(&project, task)?;
    terminal::print(&if json {
        let value = json!({
            "schema": JSON_SCHEMA, "task_id": task, "status": TaskStatus::Resolved.name(),
            "was": before.record.status.name(), "attempt": before.record.attempt, "run": run,
        });
        format!("{}\n", to_json(&value))
    } else {
        format!("{} is resolved; its attempts are counted anew\n", before.id.line(TASK_CHARS_MAX))
    })
}

fn row(task: &TaskState) -> Vec<String> {
    let record = &task.record;
    let next = match (record.status, record.retry_at) {
        (TaskStatus::Retrying, Some(at)) => match at.since(process::now()) {
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
        "task_id": task.id, "status": record.status.name(), "reason": record.reason, "error_type": record.reason.class(),
        "severity": record.severity, "attempt": record.attempt, "of": record.of, "retry_at": record.retry_at,
        "run": record.run, "why": record.why, "context": context.unwrap_or(Value::Null), "first_at": task.first_at,
        "updated_at": task.updated_at,
    })
}
