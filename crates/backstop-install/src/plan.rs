//! Which agents' settings are changed, and changing them: all are looked at before any is written.

use crate::{Agent, Change, Folders, InstallError, Records, Scope, Target};
use backstop_core::{FileAction, Redactor, Timestamp};
use backstop_report::{HookChange, HookChanges};
use backstop_store::StateFolder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be done to agents' settings.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The agents that were named; without any, those that are found.
    pub agents: Vec<Agent>,
    /// Whose settings.
    pub scope: Scope,
    /// Whether hooks are taken out.
    pub is_removal: bool,
}

/// A change, and why its agent is meant.
#[derive(Debug)]
pub struct Planned {
    /// The change.
    pub change: Change,
    /// Why its agent is meant.
    pub found: String,
}

/// Where what was made is remembered, below the state folder.
pub fn records_in(state: &Path) -> PathBuf {
    state.join("init")
}

/// Plans the changes. An agent that was not named is meant where its folder is there, or where
/// `is_found` finds its program. One file that cannot be read means that nothing is changed.
pub fn plan(
    wanted: &Wanted,
    folders: &Folders,
    records: &Records,
    is_found: &dyn Fn(&str) -> bool,
) -> Result<Vec<Planned>, InstallError> {
    let mut planned = Vec::new();
    for agent in Agent::ALL {
        let target = Target::new(agent, wanted.scope, folders)?;
        let found = match wanted.agents.is_empty() {
            false => wanted.agents.contains(&agent).then(|| "named".to_owned()),
            // What is there is taken out, whether the agent still is or not.
            true if wanted.is_removal => Some("looked at".to_owned()),
            true if target.folder.is_dir() => {
                Some(format!("found {}", HookChanges::path(&folders.project, &target.folder)))
            }
            true => is_found(agent.name()).then(|| "on the PATH".to_owned()),
        };
        let Some(found) = found else { continue };
        let change = if wanted.is_removal { Change::remove } else { Change::install }(&target, records)?;
        planned.push(Planned { change, found });
    }
    if planned.is_empty() { Err(InstallError::NothingFound) } else { Ok(planned) }
}

/// What came of changes: those that were made, and why the next could not be.
#[derive(Debug)]
pub struct Applied {
    /// The changes that were made.
    pub done: Vec<Planned>,
    /// Why the next one could not be made.
    pub failed: Option<InstallError>,
    /// How many could not be remembered.
    pub forgotten: usize,
}

/// Makes changes happen, up to the first that fails. `state` is the folder for Backstop's state.
pub fn apply(planned: Vec<Planned>, state: Option<&Path>, now: fn() -> Timestamp) -> Applied {
    let writes = |one: &Planned| !matches!(one.change.action(), FileAction::Unchanged | FileAction::Absent);
    let is_any = planned.iter().any(writes);
    // A state folder is not made for nothing; one that is there may have something to forget.
    let state = state.filter(|root| is_any || root.is_dir());
    let opened = state.and_then(|root| StateFolder::open(root, Arc::new(now), Arc::default()).ok());
    let records = Records::new(opened.map(|folder| records_in(folder.root())));
    let mut applied = Applied { done: Vec::new(), failed: None, forgotten: 0 };
    for one in planned {
        match one.change.apply(&records) {
            Ok(remembered) => {
                applied.forgotten += usize::from(!remembered);
                applied.done.push(one);
            }
            Err(error) => return Applied { failed: Some(error), ..applied },
        }
    }
    applied
}

impl Planned {
    /// What is shown of it. Secrets in the diff are masked.
    pub fn row(&self, folders: &Folders, redactor: &Redactor) -> HookChange {
        let (change, agent) = (&self.change, self.change.target.agent);
        let diff = change.diff(&HookChanges::path(&folders.project, &change.target.file));
        HookChange {
            agent: agent.name(),
            found: self.found.clone(),
            file: change.target.file.clone(),
            leads_to: change.leads_to.clone(),
            action: change.action(),
            events: change.events.clone(),
            folders: change.folders().to_vec(),
            left: change.left,
            has_gates: agent.has_gates(),
            asks_approval: agent == Agent::Codex,
            diff: redactor.redact(&diff).into_owned(),
        }
    }
}
