//! The shapes of answers, as agents read them at exit 0. Codex refuses fields that it does not
//! know: there are no others.

use serde_json::{Value, json};

/// Has nothing to say.
pub fn nothing() -> Value {
    json!({})
}

/// Adds a text to what the agent reads about a tool call, in the name of the event that told of it.
pub fn context(event: &str, text: &str) -> Value {
    if event == super::event::COPILOT_EVENT {
        return json!({ "additionalContext": text });
    }
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

/// Keeps a tool from being called.
pub fn deny(reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } })
}

/// Holds a turn that wants to end.
pub fn hold(reason: &str) -> Value {
    json!({ "decision": "block", "reason": reason })
}
