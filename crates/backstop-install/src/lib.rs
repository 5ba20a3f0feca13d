//! Hooks in agents' settings: put in, taken out again without a trace.
//!
//! A settings file is somebody else's. It is never parsed and written anew: it is parsed for where things are, and what is
//! ours is put in or cut out as text, so that every other byte stays. What cannot be read as JSON is refused. A
//! [`Change`] says what would happen to one file; nothing is written before [`Change::apply`]. What init made (the
//! file, its folders, empty lists that it filled) is kept in [`Records`], so that taking it out gives the bytes from before.
//!
//! It must not trust anything on somebody's behalf, and not touch a file that is not named by a [`Target`].

mod agent;
mod change;
mod diff;
mod error;
mod hooks;
mod json;
mod layout;
mod merge;
mod patch;
mod plugin;
mod record;
mod strip;
#[cfg(test)]
mod tests;

pub use agent::{Agent, Folders, Scope, Target};
pub use change::{Change, FileAction};
pub use error::{InstallError, JsonErrorKind};
pub use hooks::COMMAND;
pub use record::Records;
