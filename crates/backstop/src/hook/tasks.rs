//! `backstop hook status` and `backstop hook resolved`: the tasks whose errors were reported.

use super::{open_store, project_key, record};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::terminal;
use backstop_core::nearest::nearest;
use backstop_core::{EventKind, Outcome};
use backstop_report::{JSON_SCHEMA, duration, table, to_json};
use backstop_store::{HookStore, TaskState, TaskStatus};
use serde_json::{Value, json};

/// How many tasks are listed.
const TASKS_MAX: u32 = 100;
/// How much of an id is shown.
const TASK_CHARS_MAX: usize = 60;

pub(super) fn status(task: Option<&str>, json: bool) -> Result<(), CliError> {
    let context = Context::new(&[], None)?;
    let key = project_key(&context);
    let tasks = match task {
        Some(task) => vec![find(&context, task)?],
        None => match HookStore::open_existing(&context.folder()?)? {
            Some(store) => store.tasks(key.as_str(), TASKS_MAX)?,
            None => Vec::new(),
        },
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

/// The task with this id.
pub(super) fn find(context: &Context, task: &str) -> Result<TaskState, CliError> {
    let key = project_key(context);
    let Some(store) = HookStore::open_existing(&context.folder()?)? else {
        return Err(CliError::NoTask { given: task.to_owned(), nearest: None });
    };
    match store.task(key.as_str(), task)? {
        Some(found) => Ok(found),
        None => Err(unknown(&store, key.as_str(), task)?),
    }
}

pub(super) fn resolved(task: &str, json: bool) -> Result<(), CliError> {
    let context = Context::new(&[], None)?;
    let key = project_key(&context);
    let store = open_store(&context.folder()?)?;
    let Some(before) = store.task(key.as_str(), task)? else {
        return Err(unknown(&store, key.as_str(), task)?);
    };
    // Recorded before it takes effect.
    let journal = context.journal()?;
    let run = record(&context, &journal, None, "task", context::random(), events(&before))?.id();
    store.resolve_task(key.as_str(), task)?;
    journal.drop_deferred_task(task)?;
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

/// What is recorded of a task that got over its error: that the retry helped, where there was one.
fn events(before: &TaskState) -> Vec<EventKind> {
    let operation = before.id.clone();
    let recovered = EventKind::RecoveryAttempted {
        operation: Some(operation.clone()),
        strategy: "retry".to_owned(),
        success: true,
        attempt: before.record.attempt.saturating_add(1),
    };
    let started =
        EventKind::RunStarted { operation: operation.clone(), folder: None, profile: None, parent: None };
    let mut all = vec![started];
    all.extend((before.record.status == TaskStatus::Retrying).then_some(recovered));
    all.push(EventKind::StateEntered {
        operation: Some(operation),
        state: TaskStatus::Resolved.name().to_owned(),
        error_type: None,
        context: None,
    });
    all.push(EventKind::ended(Outcome::Done, None));
    all
}

fn unknown(store: &HookStore, key: &str, given: &str) -> Result<CliError, CliError> {
    let known = store.tasks(key, TASKS_MAX)?;
    let near = nearest(given, known.iter().map(|task| task.id.raw())).map(str::to_owned);
    Ok(CliError::NoTask { given: given.to_owned(), nearest: near })
}

fn row(task: &TaskState) -> Vec<String> {
    let record = &task.record;
    let next = match (record.status, record.retry_at) {
        (TaskStatus::Retrying, Some(at)) => match at.since(context::now()) {
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
