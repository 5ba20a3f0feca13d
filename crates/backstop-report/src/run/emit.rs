//! Events in the FTL seed's format: `EMIT: TOOL_FAILURE tool=… error=…`.

use super::event::event_text;
use super::line::short_cause;
use backstop_core::{Event, EventKind, Outcome, SafeText};

/// How much of a value is written.
const VALUE_CHARS_MAX: usize = 300;

/// The `EMIT` line of an event; `None` for events that the seed has no line for.
pub fn event_emit(event: &Event) -> Option<String> {
    let line = match &event.kind {
        EventKind::ErrorClassified { operation, fault, .. } => {
            let error = match &fault.cause {
                Some(cause) if !cause.raw().trim().is_empty() => cause.line(VALUE_CHARS_MAX),
                _ => short_cause(fault).unwrap_or_else(|| fault.reason.code().to_owned()),
            };
            format!("TOOL_FAILURE tool={} error={}", value(operation.raw()), value(&error))
        }
        EventKind::StateEntered { operation, state, error_type, .. } => {
            let node = operation.as_ref().map(|id| format!(" node={}", value(id.raw()))).unwrap_or_default();
            let error =
                error_type.as_ref().map(|error| format!(" error_type={}", value(error))).unwrap_or_default();
            format!("STATE_ENTRY state={}{node}{error}", value(state))
        }
        EventKind::StateMessage { message } => quoted(&message.line(VALUE_CHARS_MAX)),
        EventKind::RecoveryAttempted { strategy, success, .. } => {
            format!("RECOVERY_ATTEMPT strategy={} success={success}", value(strategy))
        }
        EventKind::RunEnded { outcome: Outcome::Done, .. } => return None,
        EventKind::RunEnded { .. } => quoted(&format!("Run ended: {}", event_text(&event.kind))),
        EventKind::RunHalted { .. } => quoted(&format!("Run halted: {}", event_text(&event.kind))),
        EventKind::Override { .. } => quoted(&format!("Override: {}", event_text(&event.kind))),
        _ => return None,
    };
    Some(format!("EMIT: {line}"))
}

/// A value, in quotes unless it is one plain word.
fn value(text: &str) -> String {
    value_within(text, VALUE_CHARS_MAX)
}

/// A value of at most `chars_max` characters, in quotes unless it is one plain word.
pub(crate) fn value_within(text: &str, chars_max: usize) -> String {
    let text = SafeText::from(text).line(chars_max);
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '=' | '\\' | '`');
    if !text.is_empty() && text.chars().all(plain) { text } else { quoted(&text) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
