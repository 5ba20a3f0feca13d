//! The banner of a phase's one retry.

use super::{Phase, message};
use crate::guidance::{GuidanceContext, retry_guidance};
use crate::notice::{Field, Notice, Value, Words};
use backstop_core::Fault;

/// A phase that failed and is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseRetry {
    /// The phase.
    pub phase: Phase,
    /// The attempt that failed, counted from 1.
    pub attempt: u32,
    /// How many attempts there may be.
    pub of: u32,
    /// What it was.
    pub fault: Fault,
    /// What is known beside the fault.
    pub context: GuidanceContext,
}

/// A phase failed and is tried again, with what went wrong as its context.
pub fn phase_retry(given: &PhaseRetry) -> Notice {
    let facts = &given.fault.facts;
    let mut details = vec![
        Field::new("type", "Type", given.fault.reason.code()),
        Field::message("message", "Message", &message(&given.fault)),
    ];
    if !facts.failed_tests.is_empty() {
        details.push(Field::names("tests", "Tests", &facts.failed_tests));
    }
    if !facts.files.is_empty() {
        details.push(Field::names("files", "Files", &facts.files));
    }
    let guidance = retry_guidance(given.fault.reason, facts, &given.context);
    Notice::headed("phase_retry", "PHASE FAILURE - Initiating Retry", Some(given.fault.reason))
        .field("phase", "Phase", given.phase.words())
        .field("", "Attempt", format!("{} of {}", given.attempt, given.of))
        .data("phase_id", crate::notice::json_text(&given.phase.id))
        .data("attempt", given.attempt)
        .data("max_attempts", given.of)
        .reason_line()
        .gap()
        .group("failure", "Failure details", details)
        .gap()
        .value("retry_guidance", "Retry guidance", Value::Prose(guidance))
        .gap()
        .next_line(Words::own(format!(
            "nothing for you to do: attempt {} of {} starts now",
            given.attempt.saturating_add(1),
            given.of
        )))
}
