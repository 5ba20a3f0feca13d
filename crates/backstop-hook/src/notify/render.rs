//! A message as each kind of sink takes it, with how often it happened.

use super::{Kind, Message, Sink};
use backstop_core::Timestamp;
use backstop_report::{JSON_SCHEMA, to_json};
use serde_json::json;

/// The longest comment that GitHub takes, and some room.
const COMMENT_CHARS_MAX: usize = 60_000;

/// How often something happened, from when to when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// First.
    pub first: Timestamp,
    /// Last.
    pub last: Timestamp,
    /// Whether not all of it was the same trouble.
    pub mixed: bool,
}

impl Times {
    /// In words; nothing where it happened once.
    fn words(&self) -> Option<String> {
        let Times { count, first, last, mixed } = self;
        match (count, mixed) {
            (0 | 1, _) => None,
            (n, false) => Some(format!("{n} times, from {first} to {last}")),
            (n, true) => {
                Some(format!("{n} failures of several kinds, from {first} to {last}; the first of them:"))
            }
        }
    }
}

/// What is sent: JSON for an address, text for a program or a terminal.
pub fn rendered(sink: &Sink, message: &Message, times: &Times) -> String {
    let counted = times.words();
    let led = |text: &str, lead: fn(&str) -> String| match &counted {
        Some(words) => format!("{}\n{text}", lead(words)),
        None => text.to_owned(),
    };
    match &sink.kind {
        Kind::Terminal | Kind::Command { .. } => led(&message.plain, str::to_owned),
        Kind::Slack { .. } => to_json(&json!({
            "text": led(&message.slack, |words| format!("*{words}*")),
            "mrkdwn": true,
            // Nothing in it becomes a link or a mention by itself.
            "parse": "none",
            "link_names": false,
            "unfurl_links": false,
            "unfurl_media": false,
        })),
        Kind::GitHub { .. } => {
            let text = led(&message.markdown, |words| format!("**{words}**\n"));
            to_json(&json!({ "body": cut(&text) }))
        }
        Kind::Webhook { .. } => to_json(&json!({
            "schema": JSON_SCHEMA,
            "sink": sink.name,
            "count": times.count.max(1),
            "mixed": times.mixed,
            "first_at": times.first,
            "last_at": times.last,
            "severity": message.about.severity,
            "reason": message.about.reason,
            "operation": message.about.operation,
            "project": message.about.project,
            "run": message.about.run,
            "title": message.title,
            "text": message.plain,
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
