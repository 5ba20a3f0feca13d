//! A halted run as JSON.

use super::ended_phases::{BlockedPhase, CompletedPhase, FailedPhase, PendingPhase};
use super::halt::HaltSummary;
use super::usage::usage_json;
use crate::JSON_SCHEMA;
use crate::notice::json_text;
use backstop_core::SafeText;
use serde_json::{Value, json};

/// The summary of a halted run as JSON, with every phase. `reason` is a code of the taxonomy,
/// `message` the line that people read. Commands, paths and refs are not escaped.
pub fn halt_json(given: &HaltSummary) -> Value {
    json!({
        "schema": JSON_SCHEMA,
        "outcome": "halted",
        "plan": given.plan.raw(),
        "run": given.state.run,
        "reason": given.reason,
        "class": given.reason.class(),
        "retryable": given.reason.retryable(),
        "message": json_text(&given.reason_line),
        "completed": given.completed.iter().map(CompletedPhase::json).collect::<Vec<_>>(),
        "failed": given.failed.iter().map(FailedPhase::json).collect::<Vec<_>>(),
        "blocked": given.blocked.iter().map(BlockedPhase::json).collect::<Vec<_>>(),
        "pending": given.pending.iter().map(PendingPhase::json).collect::<Vec<_>>(),
        "usage": given.usage.map(usage_json),
        "state": given.state.json(),
        "steps": given.steps.iter().map(SafeText::raw).collect::<Vec<_>>(),
        "resume": given.resume.raw(),
        "fresh": given.fresh_hint.raw(),
        "next": given.resume.raw(),
    })
}
