//! Work that was put aside: finding it, whether what it waits for has come, and the right to run
//! it.

use crate::admission::UNTIL_UNFROZEN;
use crate::machine_state;
use crate::project::{Project, ProjectError};
use backstop_core::deferred::DeferredIdError;
pub use backstop_core::deferred::{split, waits_for_confirmation};
use backstop_core::{ErrorKind, Fault, HintedError, Name, Reason, RunId, Timestamp, shell};
use backstop_report::near_time;
use backstop_store::{Deferred, DeferredId, Held, Hold, Holder, StoreError};
use std::collections::HashMap;
use std::time::Duration;

/// How many services are asked whether they answer.
const ASKED_MAX: usize = 4;

/// What work waits for, as it is stored: the time at which a rate limit ends, in UTC, where that is
/// known; else the condition in words.
pub fn stored_until(until: &str, fault: &Fault, now: Timestamp) -> String {
    if fault.reason != Reason::RateLimited || until == UNTIL_UNFROZEN {
        return until.to_owned();
    }
    let stated = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let ends = fault.facts.resets_at.or_else(|| stated.map(|wait| now.after(wait)));
    ends.map_or_else(|| until.to_owned(), |at| at.to_string())
}

/// Whether what each waits for has come: the time is reached, the machine has room again, the
/// service answers. Nothing where that cannot be found out. Only this machine is asked.
pub fn readiness(project: &Project, works: &[Deferred]) -> Vec<Option<bool>> {
    if works.is_empty() {
        return Vec::new();
    }
    let short_of = machine_state::look(project).short_of;
    let is_frozen = project.frozen().is_some();
    let now = project.process.now();
    let mut asked: HashMap<String, Option<bool>> = HashMap::new();
    let mut ready = |work: &Deferred| {
        let resources = work.work.reason.waits_for_resources();
        if is_frozen {
            return Some(false);
        }
        if !resources.is_empty() {
            return Some(machine_state::has_passed(resources, &short_of));
        }
        if work.work.until.raw() == UNTIL_UNFROZEN {
            return Some(true);
        }
        if let Some(at) = Timestamp::parse_rfc3339(work.work.until.raw()) {
            return Some(at <= now);
        }
        let address = work.work.address.as_deref()?;
        // Many may wait for the same one. Those that are not asked take nobody's place.
        match asked.get(address) {
            Some(known) => *known,
            None if asked.values().flatten().count() >= ASKED_MAX => None,
            None => *asked.entry(address.to_owned()).or_insert_with(|| machine_state::answers(address)),
        }
    };
    works.iter().map(&mut ready).collect()
}

/// Why deferred work cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum DeferredError {
    /// There is none with this id.
    #[error("there is no deferred work {given} in this project")]
    None {
        /// What was given.
        given: String,
    },
    /// It cannot be run as it was stored.
    #[error("the command holds a secret, which was not stored: {}", command.join(" "))]
    Masked {
        /// The command, with the secret masked.
        command: Vec<String>,
        /// What to type instead.
        again: String,
    },
    /// Only the program that reported it can go on with it.
    #[error("`{task}` is a task that somebody else works on: only who reported it can go on")]
    Task {
        /// The id of the task.
        task: String,
    },
    /// Somebody else runs it now.
    #[error("{id} is being run by {}", holder_words(holder.as_ref(), *now))]
    Held {
        /// The work.
        id: DeferredId,
        /// Who, where that is known.
        holder: Option<Holder>,
        /// The time.
        now: Timestamp,
    },
    /// It does not wait for a confirmation.
    #[error("{run} does not wait for a confirmation in this project")]
    NotWaiting {
        /// The run.
        run: RunId,
    },
    /// Another command was typed than the one that waits for a confirmation.
    #[error("{run} waits for a confirmation of another command: {}", command.join(" "))]
    OtherCommand {
        /// The run.
        run: RunId,
        /// The command that waits.
        command: Vec<String>,
    },
    /// What was given is no id.
    #[error("{0}")]
    Id(#[from] DeferredIdError),
    /// The project cannot be used.
    #[error("{0}")]
    Project(#[from] ProjectError),
}

fn holder_words(holder: Option<&Holder>, now: Timestamp) -> String {
    holder.map_or_else(
        || "another process".to_owned(),
        |holder| format!("process {} since {}", holder.pid, near_time(holder.since, now)),
    )
}

impl From<StoreError> for DeferredError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl HintedError for DeferredError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::None { .. } | Self::NotWaiting { .. } | Self::OtherCommand { .. } => ErrorKind::Usage,
            Self::Masked { .. } | Self::Task { .. } => ErrorKind::Failed,
            Self::Held { .. } => ErrorKind::Deferred,
            Self::Id(error) => error.kind(),
            Self::Project(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::None { .. } => vec!["`backstop deferred list` lists what there is".to_owned()],
            Self::Masked { again, .. } => vec![format!("type `{again}`, with the command as it was")],
            Self::Task { task } => {
                let end_of_flags = if task.starts_with('-') { "-- " } else { "" };
                let quoted = shell::quoted(task);
                vec![format!("once it is done: `backstop hook resolved {end_of_flags}{quoted}`")]
            }
            Self::Held { .. } => vec![
                "`backstop deferred list` shows whether it is still there when that has ended".to_owned(),
            ],
            Self::NotWaiting { run } => vec![format!(
                "`backstop explain {run}` tells how it ended; `backstop deferred list` what waits"
            )],
            Self::OtherCommand { run, .. } => {
                vec![format!("`backstop exec --confirm {run}` runs the one that waits")]
            }
            Self::Id(error) => error.hints(),
            Self::Project(error) => error.hints(),
        }
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Project(error) if error.is_multiline())
    }
}

/// All work that was put aside in this project.
pub fn all(project: &Project) -> Result<Vec<Deferred>, ProjectError> {
    Ok(match project.existing_journal()? {
        Some(journal) => journal.deferred()?,
        None => Vec::new(),
    })
}

/// Work by its id, such as `d-1`.
pub fn find(project: &Project, given: &str) -> Result<Deferred, DeferredError> {
    let id: DeferredId = given.parse()?;
    let found = all(project)?.into_iter().find(|work| work.id == id);
    found.ok_or_else(|| DeferredError::None { given: given.to_owned() })
}

/// The command that waits for the confirmation of this run. `is_other` says which words are another
/// surface's.
pub fn waiting_for(
    project: &Project,
    run: RunId,
    is_other: impl Fn(&[String]) -> bool,
) -> Result<Deferred, DeferredError> {
    let waits = |work: &Deferred| {
        let words = &work.work.argv;
        work.work.run == run && waits_for_confirmation(words).is_some() && !is_other(words)
    };
    all(project)?.into_iter().find(waits).ok_or(DeferredError::NotWaiting { run })
}

/// Removes work, whoever takes it first has it; an error where somebody else was faster.
pub fn take(project: &Project, work: &Deferred) -> Result<(), DeferredError> {
    match project.journal()?.drop_deferred(work.id)? {
        true => Ok(()),
        false => Err(DeferredError::NotWaiting { run: work.work.run }),
    }
}

/// Those of `works` that can be run now and were not offered to a person yet, except what `except`
/// has deferred itself. They count as offered from now on: a note that comes with every command is
/// soon not read any more.
pub fn to_offer(project: &Project, works: &[Deferred], except: Option<RunId>) -> Vec<Deferred> {
    let is_new = |work: &&Deferred| !work.offered && Some(work.work.run) != except;
    let works: Vec<Deferred> = works.iter().filter(is_new).cloned().collect();
    let ready = readiness(project, &works);
    let due = works.into_iter().zip(ready).filter(|(_, ready)| *ready == Some(true));
    let mut due: Vec<Deferred> = due.map(|(work, _)| work).collect();
    let ids: Vec<DeferredId> = due.iter().map(|work| work.id).collect();
    if ids.is_empty() {
        return due;
    }
    // What cannot be remembered is not offered: it would be offered again and again.
    let marked = project.journal().ok().and_then(|journal| journal.mark_offered(&ids).ok());
    let marked = marked.unwrap_or_default();
    due.retain(|work| marked.contains(&work.id));
    due
}

/// Takes the right to run deferred work, until it is dropped. Of many who run it at once, one does.
pub fn hold(project: &Project, given: &str) -> Result<Hold, DeferredError> {
    let id: DeferredId = given.parse()?;
    let none = || DeferredError::None { given: id.to_string() };
    let name: Name = format!("deferred-{id}").parse().map_err(|_| none())?;
    match project.folder()?.hold(&project.root, &name, project.process.id)? {
        Held::Ours(hold) => Ok(hold),
        Held::By(holder) => Err(DeferredError::Held { id, holder, now: project.process.now() }),
    }
}
