//! The outbox: what people are to be told, kept until it was said.
//!
//! One database a user, because one sender delivers for all projects. What is the same trouble,
//! told to the same place, is one row with a count; a row that is being sent is not added to. It
//! must not decide when something is said, nor send anything: a sender asks for what is queued,
//! takes a note, and tells what came of it. A note that was taken and never finished is queued
//! again by the next sender, so that everything is said at least once.

mod note;
mod queue;

pub use note::{Added, Delivered, NewNote, Note, NoteState, SentNote};

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of what is to be told.
    Outbox,
    outbox_file,
    schema::OUTBOX
);
