//! Qwen Code: `--output-format stream-json`, which is Claude Code's, with differences: what went
//! wrong stands in `error.message` (a status in its words), and tokens are counted from the
//! beginning of a session, continued or not.

use super::{AgentOutput, Report, claude, status_in, text};
use serde_json::Value;

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    claude::read_output(events, output);
    output.usage_of_session = true;
    let last = events.iter().rev().find(|event| text(event, "/type") == Some("result"));
    let Some(words) = last.and_then(|result| text(result, "/error/message")) else { return };
    if let Report::Failed(failure) = &mut output.report {
        failure.status = failure.status.or_else(|| status_in(words));
        failure.text = bare(words).to_owned();
        failure.fields["error"] = Value::from(words);
    }
}

/// Whether an event only says that it tries again.
pub(super) fn is_retry(line: &[u8]) -> bool {
    String::from_utf8_lossy(&line[..line.len().min(200)]).contains("\"subtype\":\"retry\"")
}

/// The words without the frame that it puts around them: `[API Error: …]`.
fn bare(words: &str) -> &str {
    let inside = words.trim().strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    inside.unwrap_or(words)
}
