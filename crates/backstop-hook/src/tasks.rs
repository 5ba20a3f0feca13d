//! The tasks whose errors were reported: found, and resolved.

use crate::record;
use crate::surroundings::HookError;
use backstop_core::nearest::nearest;
use backstop_core::{EventKind, Outcome, RunId};
use backstop_runtime::Project;
use backstop_store::{HookStore, TaskState, TaskStatus};

/// How many tasks are listed.
pub const TASKS_MAX: u32 = 100;

/// The tasks of a project that reported an error, newest first.
pub fn list(project: &Project) -> Result<Vec<TaskState>, HookError> {
    Ok(match HookStore::open_existing(project.folder()?)? {
        Some(store) => store.tasks(project.key().as_str(), TASKS_MAX)?,
        None => Vec::new(),
    })
}

/// The task with this id.
pub fn find(project: &Project, task: &str) -> Result<TaskState, HookError> {
    let key = project.key();
    let Some(store) = HookStore::open_existing(project.folder()?)? else {
        return Err(HookError::NoTask { given: task.to_owned(), nearest: None });
    };
    match store.task(key.as_str(), task)? {
        Some(found) => Ok(found),
        None => Err(unknown(&store, key.as_str(), task)?),
    }
}

/// The run that recorded the last error of a task.
pub fn run_of(project: &Project, task: &str) -> Result<RunId, HookError> {
    let none = || HookError::NoTask { given: task.to_owned(), nearest: None };
    find(project, task)?.record.run.ok_or_else(none)
}

/// A task has got over its error: its attempts are counted anew. Gives how it stood, and the run
/// that records this.
pub fn resolve(project: &Project, task: &str) -> Result<(TaskState, RunId), HookError> {
    let key = project.key();
    let store = project.hooks()?;
    let Some(before) = store.task(key.as_str(), task)? else {
        return Err(unknown(&store, key.as_str(), task)?);
    };
    // Recorded before it takes effect.
    let recorder = record::begin(project, None, "task", None)?;
    recorder.end(events(project, &before))?;
    store.resolve_task(key.as_str(), task)?;
    project.journal()?.drop_deferred_task(task)?;
    Ok((before, recorder.run()))
}

/// What is recorded of a task that got over its error: that the retry helped, where there was one.
fn events(project: &Project, before: &TaskState) -> Vec<EventKind> {
    let operation = before.id.clone();
    let recovered = EventKind::RecoveryAttempted {
        operation: Some(operation.clone()),
        strategy: "retry".to_owned(),
        success: true,
        attempt: before.record.attempt.saturating_add(1),
        detail: None,
    };
    let parent = project.process.parent;
    let started = EventKind::RunStarted { operation: operation.clone(), folder: None, profile: None, parent };
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

fn unknown(store: &HookStore, key: &str, given: &str) -> Result<HookError, HookError> {
    let known = store.tasks(key, TASKS_MAX)?;
    let near = nearest(given, known.iter().map(|task| task.id.raw())).map(str::to_owned);
    Ok(HookError::NoTask { given: given.to_owned(), nearest: near })
}
