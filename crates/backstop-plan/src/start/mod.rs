//! Starting or resuming a plan, from any surface: the file is read, every phase gets what it needs,
//! the place is looked at, and the first events are recorded. Nothing of the plan is carried out
//! here.
//!
//! - [`PlanFile::read`]: what was named becomes a plan.
//! - [`Equipper`]: an agent or a command, gates and limits for each phase.
//! - [`RunCommand`]: what a run was asked for, recorded and read back.
//! - [`PreparedPlan`]: both, for a surface that runs one plan.
//! - [`preflight`]: worktrees of a repository or the folder itself, looked at before anything is
//!   begun.
//! - [`begin`]: one holder, what was recorded, what somebody edited; then the first events.
//!
//! Who has to be asked is asked through [`Prompts`]; what a person should know comes back as notes.

mod begin;
mod command;
mod equip;
mod error;
mod preflight;
mod prepare;
mod read;
mod suggested_gates;
mod verify;

pub use begin::{Begun, begin, folder_name, last_run, meet, set_slots};
pub use command::{RunCommand, command_line, read_options, settings_given, start_after};
pub use equip::{Equipper, drop_missing_fallbacks, missing_programs};
pub use error::RunError;
pub use preflight::{InPlaceSetup, Workspace, preflight};
pub use prepare::{PlanRequest, PreparedPlan};
pub use read::{PlanFile, lock_name, path_in_project, recorded_options, view_name};
pub(crate) use read::{story_files, texts};
pub use suggested_gates::SuggestedGates;
pub use verify::verify_gates;

use crate::start_events::Person;
use crate::workspace::CommitMode;
use backstop_core::SafeText;
use backstop_report::Notice;
use backstop_runtime::{Observers, Project};

/// What is asked of a run when it starts.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Only go on with a run that is there.
    pub resume: bool,
    /// Begin anew; the old state is moved aside.
    pub fresh: bool,
    /// Phases whose work a person has done: only their gates are run.
    pub accept: Vec<String>,
    /// Run finished phases again whose text has changed.
    pub rerun_changed: bool,
    /// Run although tracked files have changes that are not committed.
    pub allow_dirty: bool,
    /// Nothing will be done: what would be in the way does not count.
    pub dry_run: bool,
    /// The answer to every question is yes.
    pub yes: bool,
    /// Why something is overridden.
    pub why: Option<String>,
    /// The command that goes on with the run.
    pub resume_command: String,
    /// Who is told what is recorded, from the first event on.
    pub observers: Observers,
}

impl RunRequest {
    /// Who overrides something, and why.
    pub fn person(&self, project: &Project) -> Person {
        person(project, self.why.as_deref())
    }
}

/// Who overrides something, and why.
pub fn person(project: &Project, why: Option<&str>) -> Person {
    let caller = project.process.caller.clone();
    Person {
        by: caller.unwrap_or_else(|| SafeText::new("command line")),
        why: SafeText::new(why.unwrap_or("no reason given")),
    }
}

/// Somebody who can be asked when a run starts.
pub trait Prompts {
    /// Whether a run is really begun anew. The notice says what that means; with `yes` nothing is
    /// asked.
    fn fresh_start(&self, notice: &Notice, yes: bool) -> bool;
    /// How finished phases are committed; nothing where nobody can be asked or nobody says.
    fn commit_mode(&self) -> Option<CommitMode>;
    /// Whether these gates, which the project's files suggest, are run; nothing where nobody can be
    /// asked.
    fn run_gates(&self, gates: &[String]) -> Option<bool>;
}
