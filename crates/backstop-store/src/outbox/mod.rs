//! The outbox: notifications, stored until they are sent.
//!
//! One database per user, because one sender delivers for all projects. Repeated notifications of
//! one group to one target are one row with a count; a row that is being sent is not added to. The
//! outbox must not decide when something is sent, nor send it: a sender asks for queued notes,
//! takes one, and reports the result. A note that was taken and never finished is queued again by
//! the next sender, so that everything is sent at least once.

mod note;
mod queue;

pub use note::{Added, Delivered, NewNote, Note, NoteState, SentNote};

use crate::schema;
use crate::shared::shared_store;

shared_store!(
    /// The database of notifications.
    Outbox,
    outbox_file,
    schema::OUTBOX
);
