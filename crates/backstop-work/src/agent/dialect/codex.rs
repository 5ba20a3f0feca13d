//! codex: `exec --json`.
//!
//! Only `turn.failed` and `turn.completed` decide: `error` lines and failed items are printed by
//! successful runs too. An `error` line that begins with `Reconnecting... ` tells of a request that
//! failed and is repeated.

use super::{AgentOutput, Failure, Report, number, status_in, text};
use backstop_core::Usage;
use serde_json::{Value, json};

/// How a line says that a request failed and is repeated: `Reconnecting... 2/5 (…)`.
const RECONNECTING: &str = "Reconnecting... ";

/// The request that an event says has failed and is repeated.
pub(super) fn repeated(event: &Value) -> Option<Failure> {
    let words = text(event, "/message").filter(|_| text(event, "/type") == Some("error"))?;
    let (_, cause) = words.strip_prefix(RECONNECTING)?.split_once(" (")?;
    Some(Failure::from_words(cause.strip_suffix(')').unwrap_or(cause).to_owned()))
}

pub(super) fn read_output(events: &[Value], output: &mut AgentOutput) {
    for event in events {
        match text(event, "/type") {
            Some("thread.started") => output.session_id = text(event, "/thread_id").map(str::to_owned),
            Some("item.completed") => match text(event, "/item/type") {
                Some("agent_message") => output.add_text(text(event, "/item/text").unwrap_or_default()),
                Some("command_execution") if text(event, "/item/status") == Some("declined") => {
                    output
                        .add_denial(format!("command: {}", text(event, "/item/command").unwrap_or_default()));
                }
                _ => {}
            },
            Some("turn.failed") => {
                let words = text(event, "/error/message").unwrap_or_default();
                output.report = Report::Failed(Failure {
                    status: status_in(words),
                    text: words.to_owned(),
                    fields: json!({"type": "turn.failed"}),
                    ..Failure::default()
                });
            }
            Some("turn.completed") => {
                output.report = Report::Succeeded;
                // It counts from the beginning of the thread, continued or not: the last one
                // counts.
                if let Some(usage) = event.get("usage") {
                    output.usage_of_session = true;
                    output.usage = Some(Usage {
                        input_tokens: number(usage, "/input_tokens"),
                        output_tokens: number(usage, "/output_tokens"),
                        cost_usd: None,
                    });
                }
            }
            _ => {}
        }
    }
}
