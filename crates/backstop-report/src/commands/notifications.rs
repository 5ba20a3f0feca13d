//! Notifications: the sinks, the messages that wait for them or were sent, and a test of each sink.

use crate::{JSON_SCHEMA, Style, View, duration, table};
use backstop_core::{Name, Reason, SafeText, Severity, Timestamp};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A sink as it is configured.
#[derive(Debug, Clone)]
pub struct SinkRow {
    /// Its kind, such as `slack`.
    pub kind: &'static str,
    /// Where it leads, without secrets.
    pub place: String,
    /// The least severity that it takes.
    pub severity: Severity,
    /// The reasons that it takes; all, if there are none.
    pub reasons: Vec<Reason>,
    /// The projects that it takes messages of; all, if there are none.
    pub projects: Vec<PathBuf>,
}

/// A message in the outbox.
#[derive(Debug, Clone)]
pub struct MessageRow {
    /// Its number.
    pub id: i64,
    /// The sink.
    pub sink: Name,
    /// Its state: `queued`, `sending`, `sent`, `failed`.
    pub state: &'static str,
    /// Whether it waits to be sent.
    pub is_queued: bool,
    /// How many failures it stands for.
    pub count: u64,
    /// Its title; `None` where the message cannot be read.
    pub title: Option<String>,
    /// The reason.
    pub reason: Option<Reason>,
    /// What failed.
    pub operation: Option<SafeText>,
    /// Where.
    pub project: Option<SafeText>,
    /// The time of the first failure.
    pub first_at: Timestamp,
    /// The time of the last failure.
    pub last_at: Timestamp,
    /// It is not sent before this time.
    pub not_before: Timestamp,
    /// When it was sent or given up.
    pub done_at: Option<Timestamp>,
    /// How often it was postponed.
    pub rounds: u32,
    /// What the other side said, or why it could not be sent.
    pub response: Option<SafeText>,
}

/// The sinks and the last messages.
#[derive(Debug, Clone)]
pub struct Messages {
    /// The sinks by name; the error, where one is not configured correctly.
    pub sinks: Vec<(String, Result<SinkRow, String>)>,
    /// The messages.
    pub messages: Vec<MessageRow>,
    /// The time.
    pub now: Timestamp,
}

impl View for Messages {
    fn text(&self, _: Style) -> String {
        let mut out = if self.sinks.is_empty() {
            "no sink is configured; `backstop config set notify.here.type terminal --user` makes one, and \
             docs/notifications.md shows the others\n"
                .to_owned()
        } else {
            let rows: Vec<Vec<String>> =
                self.sinks.iter().map(|(name, sink)| sink_cells(name, sink.as_ref())).collect();
            table(&["SINK", "TYPE", "FROM", "REASONS", "PLACE"], &rows)
        };
        if self.messages.is_empty() {
            out.push_str("\nno messages yet\n");
            return out;
        }
        let rows: Vec<Vec<String>> = self.messages.iter().map(|message| message.cells(self.now)).collect();
        out.push('\n');
        out.push_str(&table(&["SINK", "STATE", "TIMES", "REASON", "OPERATION", "SAID"], &rows));
        out
    }

    fn json(&self) -> Value {
        let sink = |(name, sink): &(String, Result<SinkRow, String>)| match sink {
            Ok(sink) => {
                let projects: Vec<_> = sink.projects.iter().map(|path| path.to_string_lossy()).collect();
                json!({
                    "sink": name, "type": sink.kind, "place": sink.place, "severity": sink.severity,
                    "reasons": sink.reasons, "projects": projects, "error": null,
                })
            }
            Err(error) => json!({ "sink": name, "error": error }),
        };
        let sinks: Vec<Value> = self.sinks.iter().map(sink).collect();
        let messages: Vec<Value> = self.messages.iter().map(MessageRow::json).collect();
        json!({ "schema": JSON_SCHEMA, "sinks": sinks, "messages": messages })
    }
}

fn sink_cells(name: &str, sink: Result<&SinkRow, &String>) -> Vec<String> {
    let name = name.to_owned();
    match sink {
        Ok(sink) => {
            let reasons: Vec<&str> = sink.reasons.iter().map(|reason| reason.code()).collect();
            let reasons = if reasons.is_empty() { "all".to_owned() } else { reasons.join(", ") };
            let place = SafeText::new(sink.place.as_str()).line(60);
            vec![name, sink.kind.to_owned(), sink.severity.to_string(), reasons, place]
        }
        Err(error) => {
            vec![name, "-".into(), "-".into(), "-".into(), SafeText::new(error.as_str()).line(100)]
        }
    }
}

impl MessageRow {
    fn cells(&self, now: Timestamp) -> Vec<String> {
        let state = match self.is_queued && self.not_before > now {
            true => format!("waits {}", duration(self.not_before.since(now))),
            false => self.state.to_owned(),
        };
        vec![
            self.sink.to_string(),
            state,
            self.count.to_string(),
            self.reason.map_or("-", Reason::code).to_owned(),
            self.operation.as_ref().map(|operation| operation.line(40)).unwrap_or_default(),
            self.response.as_ref().map_or_else(|| "-".to_owned(), |response| response.line(80)),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id, "sink": self.sink, "state": self.state, "count": self.count,
            "title": self.title, "reason": self.reason, "operation": self.operation,
            "project": self.project, "first_at": self.first_at, "last_at": self.last_at,
            "not_before": self.not_before, "done_at": self.done_at, "rounds": self.rounds,
            "said": self.response,
        })
    }
}

/// A test message to one sink, and what came of it.
#[derive(Debug, Clone)]
pub struct SinkTest {
    /// The sink's name.
    pub name: String,
    /// Its kind and where it leads; `None` where it is not configured correctly.
    pub sink: Option<(&'static str, String)>,
    /// Whether the message was sent.
    pub sent: bool,
    /// What the other side said, or why it could not be sent. Secrets are masked.
    pub response: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// How many attempts were made.
    pub attempts: u32,
}

impl View for SinkTest {
    fn text(&self, _: Style) -> String {
        let how = if self.sent { "sent" } else { "not sent" };
        let attempts =
            if self.attempts > 1 { format!(", {} attempts", self.attempts) } else { String::new() };
        let what = self.sink.as_ref().map(|(kind, place)| {
            let place = SafeText::new(place.as_str()).line(100);
            format!(" ({kind}, {place})")
        });
        let response = SafeText::new(self.response.as_str()).line(300);
        let hint = self.hint.as_ref().map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
        let name = SafeText::new(self.name.as_str()).line(60);
        format!("{name}{}: {how}: {response}{attempts}\n{hint}", what.unwrap_or_default())
    }

    fn json(&self) -> Value {
        let (kind, place) = self.sink.clone().unzip();
        json!({
            "sink": self.name, "type": kind, "place": place, "sent": self.sent, "said": self.response,
            "hint": self.hint, "attempts": self.attempts,
        })
    }
}

/// All sinks that were tested.
#[derive(Debug, Clone)]
pub struct SinkTests(pub Vec<SinkTest>);

impl View for SinkTests {
    fn text(&self, style: Style) -> String {
        self.0.iter().map(|test| test.text(style)).collect()
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self.0.iter().map(View::json).collect();
        json!({ "schema": JSON_SCHEMA, "sinks": rows })
    }
}
