//! Puts hooks into agents' settings files, and removes them to the byte.
//!
//! A settings file belongs to its user. It is never parsed and written anew: it is parsed for
//! positions, and our hooks are inserted or cut out as text, so that every other byte stays,
//! comments and trailing commas included. A [`Change`] says what would happen to one file; nothing
//! is written before [`Change::apply`]. What was created (the file, its folders, lists that were
//! empty) is stored in [`Records`], so that removing the hooks restores the original bytes.
//!
//! [`plan`] says which files are changed, [`doctor`] which hooks are installed and cannot be run.
//!
//! This crate must not grant trust for the user, and must not touch a file that no [`Target`]
//! names.

mod agent;
mod change;
mod diff;
pub mod doctor;
mod error;
mod hooks;
mod installed;
mod layout;
mod merge;
mod patch;
mod plan;
mod plugin;
mod record;
mod service;
mod strip;
#[cfg(test)]
mod tests;
mod text_change;

pub use agent::{Agent, Folders, Scope, Target};
pub use backstop_core::FileAction;
pub use change::Change;
pub use error::InstallError;
pub use hooks::COMMAND;
pub use installed::{Installed, installed};
pub use plan::{Applied, Planned, Wanted, apply, plan, records_in};
pub use record::Records;
pub use service::{ServiceManager, service_files};
pub use text_change::TextChange;
