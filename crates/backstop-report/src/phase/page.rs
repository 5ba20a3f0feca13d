//! The page of an error in a phase: how it shows, what was captured, what the retry is told, what a person does.

use super::captured::captured;
use super::{Phase, message};
use crate::Notice;
use crate::guidance::{GuidanceContext, retry_guidance, symptoms, user_actions};
use crate::notice::{Marker, Value, Words};
use backstop_core::{Fault, SafeText};

/// A phase that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseError {
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
    /// Whether this ends the run at once, without the retry.
    pub halts: bool,
    /// The command that continues the run.
    pub resume: SafeText,
}

/// The page of any error. The four that have a text of their own are in [`dependency_missing`](super::dependency_missing)
/// and its neighbours.
pub fn phase_error(given: &PhaseError) -> Notice {
    let reason = given.fault.reason;
    let own = |list: &[&'static str]| list.iter().map(|text| Words::own(*text)).collect::<Vec<_>>();
    let (key, label, shows) = match symptoms(reason) {
        Some(symptoms) => ("symptoms", "Symptoms", symptoms),
        None => ("causes", "Possible causes", reason.info().causes),
    };
    let title =
        if given.halts { format!("ERROR: {reason} (NON-RETRYABLE)") } else { format!("ERROR: {reason}") };
    let page = Notice::headed("phase_error", title, Some(reason))
        .field("phase", "Phase", given.phase.words())
        .field("", "Attempt", format!("{} of {}", given.attempt, given.of))
        .data("phase_id", crate::notice::json_text(&given.phase.id))
        .data("attempt", given.attempt)
        .data("max_attempts", given.of)
        .data("halted", given.halts)
        .reason_line()
        .gap()
        .list(key, label, Marker::Dash, own(shows))
        .gap()
        .group("captured", "Captured", captured(&given.fault, &given.context, &message(&given.fault)))
        .gap();
    if given.halts {
        let resume = Words::own("Then resume: ").and_outside(&given.resume);
        let mut steps = own(user_actions(reason));
        steps.push(resume.clone());
        return page
            .line("verdict", "BACKSTOP CANNOT PROCEED")
            .gap()
            .list("resolution", "Resolution", Marker::Number, steps)
            .gap()
            .line("closing", "[HALTED - Manual intervention required]")
            .next_shown(resume);
    }
    let guidance = retry_guidance(reason, &given.fault.facts, &given.context);
    let last = given.attempt >= given.of;
    let next = match last {
        true => Words::own("do what is listed above, then ").and_code(&given.resume),
        false => format!(
            "nothing for you to do: attempt {} of {} follows",
            given.attempt.saturating_add(1),
            given.of
        )
        .into(),
    };
    page.value("retry_guidance", "Retry guidance", Value::Prose(guidance))
        .gap()
        .list("user_actions", "User action if retry fails", Marker::Dash, own(user_actions(reason)))
        .gap()
        .next_line(next)
}
