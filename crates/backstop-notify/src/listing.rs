//! Sinks and stored messages as rows that a report shows.

use crate::{Message, sinks};
use backstop_config::Config;
use backstop_report::{MessageRow, SinkRow};
use backstop_store::{Note, NoteState};

/// The sinks of these settings by name; the error, where one is not configured correctly.
pub fn sink_rows(config: &Config) -> Vec<(String, Result<SinkRow, String>)> {
    let row = |sink: crate::Sink| SinkRow {
        kind: sink.kind.name(),
        place: sink.place(),
        severity: sink.route.severity,
        reasons: sink.route.reasons,
        projects: sink.route.projects,
    };
    let rows = sinks(config).into_iter();
    rows.map(|(name, sink)| (name, sink.map(row).map_err(|error| error.to_string()))).collect()
}

/// A message as it is stored.
pub fn message_row(note: Note) -> MessageRow {
    let message = serde_json::from_value::<Message>(note.note.body).ok();
    let (title, about) = message.map(|message| (message.title, message.about)).unzip();
    MessageRow {
        id: note.id,
        sink: note.note.sink,
        state: note.state.name(),
        is_queued: note.state == NoteState::Queued,
        count: note.count,
        title,
        reason: about.as_ref().and_then(|about| about.reason),
        operation: about.as_ref().map(|about| about.operation.clone()),
        project: about.map(|about| about.project),
        first_at: note.first_at,
        last_at: note.last_at,
        not_before: note.not_before,
        done_at: note.done_at,
        rounds: note.rounds,
        response: note.response,
    }
}
