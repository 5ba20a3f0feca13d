//! Events with the GDD seed's fields, for programs that tail its telemetry.

use super::line::short_cause;
use backstop_core::{Event, EventKind};
use serde_json::{Value, json};

/// An `error.classified` event with the seed's fields, and Backstop's own inside `payload`; `None`
/// for other events.
pub fn event_gdd(event: &Event) -> Option<Value> {
    let EventKind::ErrorClassified { operation, attempt, fault } = &event.kind else {
        return None;
    };
    // The seed always has both; a run is a session where nobody named one.
    let session =
        event.session.as_ref().map_or_else(|| event.run.to_string(), |session| session.raw().to_owned());
    let caller =
        event.caller.as_ref().map_or_else(|| event.surface.clone(), |caller| caller.raw().to_owned());
    Some(json!({
        "type": event.kind.name(),
        "timestamp": event.at,
        "sessionId": session,
        "payload": {
            "reason": fault.reason,
            "retryable": fault.retryable,
            "caller": caller,
            "class": fault.class,
            "severity": fault.severity,
            "retry": fault.retry,
            "suggestedAction": fault.suggested_action,
            "cause": short_cause(fault),
            "rule": fault.evidence.first().map(|evidence| &evidence.rule),
            "operation": operation,
            "attempt": attempt,
            "surface": event.surface,
            "run": event.run,
            "seq": event.seq,
        },
    }))
}
