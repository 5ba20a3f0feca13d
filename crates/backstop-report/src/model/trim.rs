//! What was removed from a conversation, in one line and as JSON.

use crate::JSON_SCHEMA;
use serde_json::{Value, json};

/// What was done to a request to make it smaller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrimReport {
    /// How many messages or items were removed.
    pub messages_removed: usize,
    /// How many there were.
    pub messages: usize,
    /// How many images and documents were removed.
    pub attachments_removed: usize,
    /// How many tool results were shortened.
    pub results_shortened: usize,
    /// The largest answer that is asked for, before and after, where that was lowered.
    pub max_tokens: Option<(u64, u64)>,
    /// The size before and after, in tokens: estimated, unless the provider named it.
    pub tokens: (u64, u64),
    /// The size before and after, in bytes.
    pub bytes: (usize, usize),
}

/// `removed 12 of 40 messages: about 213462 -> 104000 tokens`.
pub fn trim_line(report: &TrimReport) -> String {
    let many = |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let mut done = Vec::new();
    if report.messages_removed > 0 {
        done.push(format!("removed {} of {} messages", report.messages_removed, report.messages));
    }
    if report.attachments_removed > 0 {
        done.push(format!("removed {}", many(report.attachments_removed, "attachment", "attachments")));
    }
    if report.results_shortened > 0 {
        done.push(format!("shortened {}", many(report.results_shortened, "tool result", "tool results")));
    }
    if let Some((before, after)) = report.max_tokens {
        return format!("lowered the longest answer from {before} to {after} tokens");
    }
    let size = if report.attachments_removed > 0 {
        format!("{} -> {} bytes", report.bytes.0, report.bytes.1)
    } else {
        format!("about {} -> {} tokens", report.tokens.0, report.tokens.1)
    };
    format!("{}: {size}", done.join(", "))
}

/// The same, with the request itself where `request` is given.
pub fn trim_json(report: &TrimReport, api: &str, request: Option<Value>) -> Value {
    let mut json = json!({
        "schema": JSON_SCHEMA,
        "api": api,
        "messages": report.messages,
        "messages_removed": report.messages_removed,
        "attachments_removed": report.attachments_removed,
        "results_shortened": report.results_shortened,
        "max_tokens": report.max_tokens.map(|(before, after)| json!({ "before": before, "after": after })),
        "tokens": { "before": report.tokens.0, "after": report.tokens.1 },
        "bytes": { "before": report.bytes.0, "after": report.bytes.1 },
    });
    if let Some(request) = request {
        json["request"] = request;
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_was_done() {
        let report =
            TrimReport { messages: 40, tokens: (2000, 900), bytes: (9000, 4000), ..TrimReport::default() };
        let line = |change: fn(&mut TrimReport)| {
            let mut report = report;
            change(&mut report);
            trim_line(&report)
        };
        assert_eq!(line(|r| r.messages_removed = 12), "removed 12 of 40 messages: about 2000 -> 900 tokens");
        assert_eq!(line(|r| r.attachments_removed = 1), "removed 1 attachment: 9000 -> 4000 bytes");
        assert_eq!(
            line(|r| (r.messages_removed, r.results_shortened) = (2, 3)),
            "removed 2 of 40 messages, shortened 3 tool results: about 2000 -> 900 tokens"
        );
        assert_eq!(line(|r| r.max_tokens = Some((9, 8))), "lowered the longest answer from 9 to 8 tokens");
    }
}
