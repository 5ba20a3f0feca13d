//! Renders a message for each kind of sink, with the count of its repetitions.

use super::{Message, Sink, SinkKind};
use backstop_core::{SafeText, Timestamp};
use backstop_report::{Form, JSON_SCHEMA, name_list, to_json};
use serde_json::json;

/// The longest comment that GitHub accepts, with a margin.
const COMMENT_CHARS_MAX: usize = 60_000;

/// How often a message repeats, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The number of repetitions.
    pub count: u64,
    /// The time of the first.
    pub first: Timestamp,
    /// The time of the last.
    pub last: Timestamp,
    /// Whether different failures were merged into it.
    pub mixed: bool,
    /// The first few operations, each once.
    pub names: Vec<SafeText>,
}

impl Times {
    /// The repetitions in words, with names escaped for `form`; `None` if it happened once.
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

/// The body to send: JSON for an address, text for a program or a terminal.
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
            // Slack makes no links or mentions from plain text.
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

/// Cuts a comment that is too long at a line end. A notice is never that long.
fn cut(text: &str) -> &str {
    match text.char_indices().nth(COMMENT_CHARS_MAX) {
        Some((at, _)) => &text[..text[..at].rfind('\n').unwrap_or(0)],
        None => text,
    }
}
