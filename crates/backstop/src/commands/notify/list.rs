//! `backstop notify list`: the sinks, what waits, and what became of the last messages.

use crate::error::CliError;
use crate::process;
use crate::terminal;
use backstop_core::{Reason, SafeText};
use backstop_notify::Message;
use backstop_report::{JSON_SCHEMA, duration, table, to_json};
use backstop_runtime::Project;
use backstop_store::{Note, NoteState, Outbox};
use serde_json::{Value, json};

/// How many messages are shown.
const SHOWN_MAX: usize = 50;

pub(super) fn run(json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    terminal::warn_inert(&project.config);
    let notes = match Outbox::open_existing(project.folder()?)? {
        Some(outbox) => outbox.notes()?,
        None => Vec::new(),
    };
    let notes: Vec<Note> = notes.into_iter().take(SHOWN_MAX).collect();
    if json {
        return terminal::print(&format!("{}\n", to_json(&value(&project, &notes))));
    }
    terminal::print(&text(&project, &notes))
}

fn value(project: &Project, notes: &[Note]) -> Value {
    let sinks: Vec<Value> = backstop_notify::sinks(&project.config)
        .into_iter()
        .map(|(name, sink)| match sink {
            Ok(sink) => json!({
                "sink": name, "type": sink.kind.name(), "place": sink.place(), "severity": sink.route.severity,
                "reasons": sink.route.reasons, "projects": sink.route.projects.iter().map(|p| p.to_string_lossy()).collect::<Vec<_>>(),
                "error": null,
            }),
            Err(error) => json!({ "sink": name, "error": error.to_string() }),
        })
        .collect();
    let rows: Vec<Value> = notes
        .iter()
        .map(|note| {
            let message = serde_json::from_value::<Message>(note.note.body.clone()).ok();
            json!({
                "id": note.id, "sink": note.note.sink, "state": note.state.name(), "count": note.count,
                "title": message.as_ref().map(|m| m.title.clone()), "reason": message.as_ref().and_then(|m| m.about.reason),
                "operation": message.as_ref().map(|m| m.about.operation.clone()),
                "project": message.map(|m| m.about.project), "first_at": note.first_at, "last_at": note.last_at,
                "not_before": note.not_before, "done_at": note.done_at, "rounds": note.rounds, "said": note.response,
            })
        })
        .collect();
    json!({ "schema": JSON_SCHEMA, "sinks": sinks, "messages": rows })
}

fn text(project: &Project, notes: &[Note]) -> String {
    let sinks = backstop_notify::sinks(&project.config);
    let mut out = String::new();
    if sinks.is_empty() {
        out.push_str(
            "no sink is configured; `backstop config set notify.here.type terminal --user` makes one, and \
             docs/notifications.md shows the others\n",
        );
    } else {
        let rows: Vec<Vec<String>> = sinks
            .into_iter()
            .map(|(name, sink)| match sink {
                Ok(sink) => {
                    let reasons: Vec<&str> = sink.route.reasons.iter().map(|r| Reason::code(*r)).collect();
                    let reasons = if reasons.is_empty() { "all".to_owned() } else { reasons.join(", ") };
                    let place = SafeText::new(sink.place()).line(60);
                    vec![name, sink.kind.name().to_owned(), sink.route.severity.to_string(), reasons, place]
                }
                Err(error) => {
                    vec![name, "-".into(), "-".into(), "-".into(), SafeText::new(error.to_string()).line(100)]
                }
            })
            .collect();
        out.push_str(&table(&["SINK", "TYPE", "FROM", "REASONS", "PLACE"], &rows));
    }
    if notes.is_empty() {
        out.push_str("\nno messages yet\n");
        return out;
    }
    let now = process::now();
    let rows: Vec<Vec<String>> = notes
        .iter()
        .map(|note| {
            let message = serde_json::from_value::<Message>(note.note.body.clone()).ok();
            let about = message.map(|m| m.about);
            let operation = about.as_ref().map(|a| a.operation.line(40)).unwrap_or_default();
            let reason = about.and_then(|a| a.reason).map_or("-", Reason::code);
            let state = match note.state {
                NoteState::Queued if note.not_before > now => {
                    format!("waits {}", duration(note.not_before.since(now)))
                }
                state => state.name().to_owned(),
            };
            let response =
                note.response.as_ref().map_or_else(|| "-".to_owned(), |response| response.line(80));
            vec![
                note.note.sink.to_string(),
                state,
                note.count.to_string(),
                reason.to_owned(),
                operation,
                response,
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&table(&["SINK", "STATE", "TIMES", "REASON", "OPERATION", "SAID"], &rows));
    out
}
