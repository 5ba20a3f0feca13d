//! A note: one notification for one sink, its repetitions and its state.

use backstop_core::{Name, SafeText, Timestamp};

/// A notification for one sink.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNote {
    /// The sink, by its name in the configuration.
    pub sink: Name,
    /// An identifier of where the sink leads, without secrets. Sinks with the same target share a
    /// rate limit.
    pub target: String,
    /// The project whose configuration has the sink.
    pub project: String,
    /// The group: notifications about the same failure have the same.
    pub group: String,
    /// The message. Secrets are masked before it is stored.
    pub body: serde_json::Value,
    /// The operation that failed.
    pub label: String,
    /// Whether it must not wait behind less severe ones.
    pub urgent: bool,
}

/// The result of adding a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The id of the row.
    pub id: i64,
    /// How many notifications the row stands for now.
    pub count: u64,
}

/// The state of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteState {
    /// It waits to be sent.
    Queued,
    /// A sender has taken it.
    Sending,
    /// It was sent.
    Sent,
    /// It could not be sent, and is not tried again.
    Failed,
}

impl NoteState {
    /// The name as it is written.
    pub fn name(self) -> &'static str {
        match self {
            NoteState::Queued => "queued",
            NoteState::Sending => "sending",
            NoteState::Sent => "sent",
            NoteState::Failed => "failed",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Queued, Self::Sending, Self::Sent, Self::Failed].into_iter().find(|state| state.name() == name)
    }
}

/// A note as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The id of the row.
    pub id: i64,
    /// The notification that was added first.
    pub note: NewNote,
    /// The operations that failed, each once, the first few of them.
    pub labels: Vec<SafeText>,
    /// How many notifications it stands for.
    pub count: u64,
    /// Its state.
    pub state: NoteState,
    /// The time of the first.
    pub first_at: Timestamp,
    /// The time of the last.
    pub last_at: Timestamp,
    /// Not sent before this time.
    pub not_before: Timestamp,
    /// How often a sender has postponed it.
    pub rounds: u32,
    /// When it was sent or given up.
    pub done_at: Option<Timestamp>,
    /// The response to the last delivery, or why it failed.
    pub response: Option<SafeText>,
}

/// A note that was sent, for the rate limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentNote {
    /// The target of its sink.
    pub target: String,
    /// Its group.
    pub group: String,
    /// When it was sent.
    pub at: Timestamp,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// It was sent; the response of the other side.
    Sent(SafeText),
    /// It could not be sent now.
    Later {
        /// Not before this time.
        until: Timestamp,
        /// Why not.
        why: SafeText,
    },
    /// It cannot be sent; why.
    Failed(SafeText),
}
