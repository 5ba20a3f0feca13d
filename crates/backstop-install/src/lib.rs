//! Puts hooks into agents' settings files, and removes them to the byte.
//!
//! A settings file belongs to its user. It is never parsed and written anew: it is parsed for
//! positions, and our hooks are inserted or cut out as text, so that every other byte stays, comments
//! and trailing commas included. A [`Change`] says what would happen to one file; nothing is
//! written before [`Change::apply`]. What was created (the file, its folders, lists that were
//! empty) is stored in [`Records`], so that removing the hooks restores the original bytes.
//!
//! This crate must not grant trust for the user, and must not touch a file that no [`Target`]
//! names.

mod agent;
mod change;
mod diff;
mod error;
mod hooks;
mod installed;
mod json;
mod layout;
mod merge;
mod patch;
mod plugin;
mod record;
mod strip;
#[cfg(test)]
mod tests;
mod text_change;

pub use agent::{Agent, Folders, Scope, Target};
pub use change::{Change, FileAction};
pub use error::{InstallError, JsonErrorKind};
pub use hooks::COMMAND;
pub use installed::{Installed, installed};
pub use record::Records;
pub use text_change::TextChange;
