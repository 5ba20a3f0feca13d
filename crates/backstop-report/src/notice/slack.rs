//! A notice for Slack's mrkdwn: a line for each label. Text from outside is in code spans and code
//! blocks only.
//!
//! Slack reads `<…>` as a link or a mention everywhere, so `&`, `<` and `>` are always written as
//! entities. A code span or block cannot be closed from inside, because backticks are replaced.

use super::terminal::{MESSAGE_CHARS_MAX, MESSAGE_LINES_MAX};
use super::words::VALUE_CHARS_MAX;
use super::{Field, ITEMS_MAX, Marker, NAMES_MAX, Notice, Part, Value, Words, params};
use crate::list;
use backstop_core::SafeText;

/// The replacement for a backtick in text from outside.
const TICK: &str = "'";

impl Notice {
    /// The notice in Slack's mrkdwn.
    pub fn slack(&self) -> String {
        let mut out = format!("*{}*\n", own(&self.title));
        for part in &self.parts {
            match part {
                Part::Reason => {
                    if let Some(reason) = self.reason {
                        out.push_str(&format!("*Reason:* `{reason}` ({})\n", reason.class()));
                    }
                }
                Part::Field(field) => out.push_str(&field_line(field)),
                Part::List(_, label, marker, items) => out.push_str(&items_lines(label, *marker, items)),
                Part::Line(_, words) => out.push_str(&format!("{}\n", slack_words(words))),
                Part::Next => out.push_str(&format!("*Next:* {}\n", slack_words(&self.next))),
                Part::Gap | Part::Data(..) => {}
            }
        }
        out
    }
}

/// Backstop's own words, with Slack's three special characters as entities.
fn own(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text from outside, in a code span.
fn span(text: &SafeText) -> String {
    format!("`{}`", code(&text.line(VALUE_CHARS_MAX)))
}

fn code(line: &str) -> String {
    own(&line.replace('`', TICK))
}

pub(crate) fn slack_words(words: &Words) -> String {
    words.slack(own, span)
}

fn items_lines(label: &str, marker: Marker, items: &[Words]) -> String {
    let mut out = format!("*{label}:*\n");
    for (n, item) in items.iter().take(ITEMS_MAX).enumerate() {
        let mark = match marker {
            Marker::Paren | Marker::Number => format!("{}. ", n + 1),
            Marker::Indent => "• ".to_owned(),
        };
        out.push_str(&format!("{mark}{}\n", slack_words(item)));
    }
    if items.len() > ITEMS_MAX {
        out.push_str(&format!("•{}\n", list::more(items.len(), ITEMS_MAX)));
    }
    out
}

fn field_line(field: &Field) -> String {
    let text = match &field.value {
        Value::Line(words) => slack_words(words),
        Value::Message(text) => return message(field.label, text),
        Value::Names(names) => slack_words(&Words::names(names, NAMES_MAX)),
        Value::Bracketed(names) => slack_words(&Words::names(names, ITEMS_MAX)),
        Value::Params(given) => slack_words(&params(given)),
    };
    format!("*{}:* {text}\n", field.label)
}

fn message(label: &str, text: &SafeText) -> String {
    let mut lines = list::lines(text, MESSAGE_CHARS_MAX);
    match lines.as_slice() {
        [only] if only.is_empty() => return format!("*{label}:* (no message)\n"),
        [only] => return format!("*{label}:* `{}`\n", code(only)),
        _ => {}
    }
    let rest = lines.len().saturating_sub(MESSAGE_LINES_MAX);
    lines.truncate(MESSAGE_LINES_MAX);
    if rest > 0 {
        lines.push(format!("and {rest} more lines"));
    }
    let lines: Vec<String> = lines.iter().map(|line| code(line)).collect();
    format!("*{label}:*\n```\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use crate::samples::tests::texts;
    use crate::{Alert, alert};
    use backstop_core::{Reason, Timestamp};
    use proptest::prelude::*;

    /// What is left of a text when code spans and blocks are taken out. A span that is not closed
    /// is left in.
    fn outside_code(text: &str) -> String {
        let parts: Vec<&str> = text.split("```").collect();
        assert!(parts.len() % 2 == 1, "a block is open: {text}");
        let mut out = String::new();
        for line in parts.into_iter().step_by(2).flat_map(str::lines) {
            let parts: Vec<&str> = line.split('`').collect();
            assert!(parts.len() % 2 == 1, "a span is open: {line}");
            out.extend(parts.into_iter().step_by(2));
            out.push('\n');
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn nothing_from_outside_has_a_meaning_in_slack(texts in texts()) {
            let notice = alert(&Alert {
                operation: texts.command.clone(), project: texts.file.clone(), cause: Some(texts.message.clone()),
                next: Some(texts.check.clone()), ..Alert::new(Reason::TestFailure, Timestamp::from_millis(0))
            });
            let text = notice.slack();
            prop_assert!(!text.contains(['<', '>']), "{text}");
            let plain = outside_code(&text);
            for bad in ["@", "://", "http", "&lt;"] {
                prop_assert!(!plain.contains(bad), "{bad} in {plain}");
            }
        }
    }
}
