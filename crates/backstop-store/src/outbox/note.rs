//! What a note is: to whom, about what, how often, and what came of it.

use backstop_core::{Name, SafeText, Timestamp};

/// Something that a person is to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNote {
    /// The sink, by its name in the configuration.
    pub sink: Name,
    /// Where the sink leads to, in a form that is no secret: what is limited together has the same.
    pub target: String,
    /// The project whose configuration has the sink.
    pub project: String,
    /// What is the same trouble has the same.
    pub group: String,
    /// What is said. Secrets are masked on the way in.
    pub body: serde_json::Value,
    /// What it happened to, by name.
    pub label: String,
    /// Whether it must not wait behind what is less bad.
    pub urgent: bool,
}

/// What became of adding a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The row.
    pub id: i64,
    /// How often this trouble is in it now.
    pub count: u64,
}

/// Where a note stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteState {
    /// It waits.
    Queued,
    /// A sender has taken it.
    Sending,
    /// It was said.
    Sent,
    /// It could not be said, and is not tried again.
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

/// A note as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The row.
    pub id: i64,
    /// What was added first.
    pub note: NewNote,
    /// What it happened to, each once, the first few of them.
    pub labels: Vec<SafeText>,
    /// How often it happened.
    pub count: u64,
    /// Where it stands.
    pub state: NoteState,
    /// When it happened first.
    pub first_at: Timestamp,
    /// When it happened last.
    pub last_at: Timestamp,
    /// Not said before this.
    pub not_before: Timestamp,
    /// How often a sender has given up on it.
    pub rounds: u32,
    /// When it was said, or given up.
    pub done_at: Option<Timestamp>,
    /// What came of the last try.
    pub response: Option<SafeText>,
}

/// A note that was said: what limits look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentNote {
    /// Where it went.
    pub target: String,
    /// What it was about.
    pub group: String,
    /// When.
    pub at: Timestamp,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// It was said; what the other side answered.
    Sent(SafeText),
    /// It could not be said now.
    Later {
        /// Not before this.
        until: Timestamp,
        /// Why not.
        why: SafeText,
    },
    /// It cannot be said.
    Failed(SafeText),
}
