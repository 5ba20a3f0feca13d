//! The one way to open, read, append to and replace files whose names others may have prepared.
//!
//! A project comes from somebody else: a link, a pipe or a device can wait at every path that
//! Backstop writes or reads there. [`Folder`] opens files below a folder and follows no link on the
//! way, opens regular files only, never waits for a pipe, reads a bounded number of bytes, and
//! replaces files atomically. A path that a person typed, or wrote into their own settings, is
//! [`named`]: its links are that person's. [`GivenPath`] tells the two apart.
//!
//! This crate must not decide what a refusal means: [`FileError`] says what was refused, and what
//! to type about it.

mod error;
mod folder;
mod given;
pub mod named;
mod replace;
mod walk;

pub use error::{FileError, FileKind};
pub use folder::Folder;
pub use given::GivenPath;

/// How long a replaced file takes to be safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk when the call returns.
    OnDisk,
    /// The system writes it when it likes: for files that can be generated again.
    Later,
}
