//! A message as each kind of sink takes it, with how often it happened.

use super::{Message, Sink, SinkKind};
use backstop_core::{SafeText, Timestamp};
use backstop_report::{Form, JSON_SCHEMA, name_list, to_json};
use serde_json::json;

/// The longest comment that GitHub takes, and some room.
const COMMENT_CHARS_MAX: usize = 60_000;

/// How often something happened, from when to when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// First.
    pub first: Timestamp,
    /// Last.
    pub last: Timestamp,
    /// Whether not all of it was the same trouble.
    pub mixed: bool,
    /// What it happened to, each once, the first few of them.
    pub names: Vec<SafeText>,
}

impl Times {
    /// In words, with the names in a form that is escaped for where it goes; nothing where it happened once.
    fn words(&self, form: Form) -> Option<String> {
        let Times { count, first, last, mixed, names } = self;
        match (count, mixed) {
            (0 | 1, _) => None,
            (n, false) if names.len() > 1 => {
                Some(format!("{n} times, from {first} to {last}: {}", name_list(names, form)))
            }
            (n, false) => Some(format!("{n} times, from {first} to {last}")),
            (n, true) => {
                Some(format!("{n} failures of several kinds, from {first} to {last}; the first of them:"))
            }
        }
    }
}

/// What is sent: JSON for an address, text for a program or a terminal.
pub fn rendered(sink: &Sink, message: &Message, times: &Times) -> String {
    let led = |text: &str, form: Form| match times.words(form) {
        Some(words) => format!("{words}\n{}{text}", if form == Form::Markdown { "\n" } else { "" }),
        None => text.to_owned(),
    };
    match &sink.kind {
        SinkKind::Terminal | SinkKind::Command { .. } => led(&message.plain, Form::Terminal),
        SinkKind::Slack { .. } => to_json(&json!({
            "text": led(&message.slack, Form::Slack),
            "mrkdwn": true,
            // Nothing in it becomes a link or a mention by itself.
            "parse": "none",
            "link_names": false,
            "unfurl_links": false,
            "unfurl_media": false,
        })),
        SinkKind::GitHub { .. } => {
            let text = led(&message.markdown, Form::Markdown);
            to_json(&json!({ "body": cut(&text) }))
        }
        SinkKind::Webhook { .. } => to_json(&json!({
            "schema": JSON_SCHEMA,
            "sink": sink.name,
            "count": times.count.max(1),
            "mixed": times.mixed,
            "first_at": times.first,
            "last_at": times.last,
            "severity": message.about.severity,
            "reason": message.about.reason,
            "operation": message.about.operation,
            "operations": times.names,
            "outcome": message.about.outcome,
            "project": message.about.project,
            "run": message.about.run,
            "title": message.title,
            "text": led(&message.plain, Form::Terminal),
            "notice": message.notice,
        })),
    }
}

/// Whole lines of a comment that is too long. A notice never is.
fn cut(text: &str) -> &str {
    match text.char_indices().nth(COMMENT_CHARS_MAX) {
        Some((at, _)) => &text[..text[..at].rfind('\n').unwrap_or(0)],
        None => text,
    }
}
