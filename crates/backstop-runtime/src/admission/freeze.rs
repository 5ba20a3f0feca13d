//! A frozen project: no new work until somebody says so.

use crate::project::{Project, ProjectError};
use backstop_store::Freeze;

/// The state that is recorded of a project which is frozen.
pub const FROZEN: &str = "frozen";
/// The command that lets it go on.
pub const UNFREEZE: &str = "backstop unfreeze --why TEXT";
/// What work waits for that was reported while its project was frozen.
pub const UNTIL_UNFROZEN: &str = "somebody lets the project go on";

impl Project {
    /// Why this project is frozen, where it is. A marker that cannot be looked at freezes nothing:
    /// whoever cannot read the state folder is told so elsewhere.
    pub fn frozen(&self) -> Option<Freeze> {
        self.folder().ok()?.frozen(&self.root).ok()?
    }

    /// Refuses new work in a frozen project.
    pub fn refuse_if_frozen(&self) -> Result<(), ProjectError> {
        match self.frozen() {
            Some(freeze) => Err(ProjectError::Frozen(Box::new(freeze))),
            None => Ok(()),
        }
    }
}
