//! `backstop hook status` and `backstop hook resolved`: the tasks whose errors were reported.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_hook::tasks;
use backstop_report::{TaskList, TaskResolved};

pub(super) fn status(task: Option<&str>, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let tasks = match task {
        Some(task) => vec![tasks::find(&project, task)?],
        None => tasks::list(&project)?,
    };
    terminal::show(&TaskList { tasks, is_one: task.is_some(), now: process::now() }, json)
}

pub(super) fn resolved(task: &str, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let (before, run) = tasks::resolve(&project, task)?;
    terminal::show(&TaskResolved { given: task.to_owned(), before, run }, json)
}
