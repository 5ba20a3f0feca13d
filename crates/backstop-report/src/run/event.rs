//! One line for each event.

use super::line::short_cause;
use super::{clock, decision_words, duration};
use crate::{Style, list, until_words};
use backstop_core::{Event, EventKind, SafeText, Timestamp};
use std::time::Duration;

/// How much of a text is shown.
const TEXT_CHARS_MAX: usize = 120;

/// The line of an event: time, id, kind and text.
pub fn event_line(event: &Event, style: Style) -> String {
    let text = SafeText::new(event_text(&event.kind)).line(TEXT_CHARS_MAX * 4);
    let line = format!(
        "{} {:<10} {:<22} {}",
        clock(event.at),
        event.id.to_string(),
        event.kind.name(),
        style.marks(&text)
    );
    line.trim_end().to_owned()
}

/// The text of an event: one line, escaped for a terminal, with times for people.
pub(super) fn event_text(kind: &EventKind) -> String {
    text_with_times(kind, super::date)
}

/// The same for programs: times are in UTC.
pub(super) fn event_text_utc(kind: &EventKind) -> String {
    text_with_times(kind, |at| at.to_string())
}

fn text_with_times(kind: &EventKind, time: fn(Timestamp) -> String) -> String {
    let text = |text: &SafeText| text.line(TEXT_CHARS_MAX);
    let ms = |ms: u64| duration(Duration::from_millis(ms));
    let own = |text: &str| SafeText::from(text).line(TEXT_CHARS_MAX);
    match kind {
        EventKind::RunStarted { operation, folder, .. } => match folder {
            Some(folder) => format!("{} in {}", text(operation), text(folder)),
            None => text(operation),
        },
        EventKind::RunEnded { outcome, reason, attempts, duration_ms, .. } => {
            let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            format!(
                "{outcome}{why} after {} and {}",
                list::count((*attempts).into(), "attempt", "attempts"),
                ms(*duration_ms)
            )
        }
        EventKind::RunHalted { reason, resume } => format!("{reason}; continue with {}", own(resume)),
        EventKind::RunResumed {} => "the run goes on".to_owned(),
        EventKind::AttemptStarted { operation, attempt } => {
            format!("attempt {attempt} of {}", text(operation))
        }
        EventKind::AttemptFinished { operation, attempt, success, duration_ms, exit, signal, .. } => {
            let how =
                exit_or_signal(*exit, signal.as_deref()).map(|how| format!(", {how}")).unwrap_or_default();
            let end = if *success { "succeeded" } else { "failed" };
            format!("attempt {attempt} of {} {end} after {}{how}", text(operation), ms(*duration_ms))
        }
        EventKind::AttemptLost { operation, attempt, why, .. } => {
            format!("attempt {attempt} of {}: how it ended is not known: {}", text(operation), text(why))
        }
        EventKind::SessionStarted { operation, attempt, agent, session_id, .. } => {
            let (agent, id) = (SafeText::new(agent.as_str()), text(session_id));
            format!("attempt {attempt} of {}: session {id} of {}", text(operation), text(&agent))
        }
        EventKind::ErrorClassified { operation, attempt, fault } => {
            let cause = short_cause(fault).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("attempt {attempt} of {}: {} ({}){cause}", text(operation), fault.reason, fault.class)
        }
        EventKind::DecisionMade { operation, decision, reclassified, .. } => {
            let of = operation.as_ref().map(|op| format!("{}: ", text(op))).unwrap_or_default();
            let now = reclassified.map(|reason| format!("; from now on it is {reason}")).unwrap_or_default();
            format!(
                "{of}{}: {}{now}",
                decision_words(decision, time).terminal(Style::PLAIN),
                own(&decision.why)
            )
        }
        EventKind::RecoveryAttempted { strategy, success, .. } => {
            format!("{}: {}", own(strategy), if *success { "it helped" } else { "it did not help" })
        }
        EventKind::GuardUpdated { provider, until: Some(until) } => {
            format!("{provider} is closed until {}", time(*until))
        }
        EventKind::GuardUpdated { provider, until: None } => format!("{provider} is open"),
        EventKind::GuardWaited { provider, waited_ms } => format!("waited {} for {provider}", ms(*waited_ms)),
        EventKind::WaitStarted { operation, provider, wait_ms, .. } => {
            let what = operation.as_ref().map_or_else(|| "the run".to_owned(), &text);
            let whom =
                provider.as_ref().map(|provider| format!(" for {}", text(provider))).unwrap_or_default();
            format!("{what} waits {}{whom}", ms(*wait_ms))
        }
        EventKind::BudgetConsumed { budget, units, remaining } => {
            format!("{budget}: {units} taken, {remaining} left")
        }
        EventKind::BudgetRefunded { budget, units, remaining } => {
            format!("{budget}: {units} given back, {remaining} left")
        }
        EventKind::BudgetExhausted { budget } => format!("{budget}: nothing left"),
        EventKind::BreakerOpened { provider, operation, failures } => {
            format!("{provider}, {}: open after {failures} failures in a row", text(operation))
        }
        EventKind::BreakerClosed { provider, operation } => {
            format!("{provider}, {}: closed, it works again", text(operation))
        }
        EventKind::GateFinished { gate, passed, operation, .. } => {
            let of = operation.as_ref().map(|op| format!("{}: ", text(op))).unwrap_or_default();
            format!("{of}{} {}", own(gate), if *passed { "passed" } else { "failed" })
        }
        EventKind::BaseChecked { gates, .. } => {
            let said = |gate: &backstop_core::BaseGate| {
                let state = match gate.state {
                    backstop_core::BaseState::Passed => "passes",
                    backstop_core::BaseState::Failed => "fails",
                    backstop_core::BaseState::Missing => "has no tool",
                };
                format!("{} {state}", own(&gate.gate))
            };
            gates.iter().map(said).collect::<Vec<_>>().join(", ")
        }
        EventKind::IntegrationStarted { operation, .. } => text(operation),
        EventKind::IntegrationFinished { operation, tip } => {
            format!("{}, the tip is {}", text(operation), own(tip))
        }
        EventKind::IntegrationConflicted { operation, files, .. } => {
            let files: Vec<SafeText> = files.iter().map(|file| SafeText::from(file.as_str())).collect();
            format!("{} conflicts in {}", text(operation), list::names(&files, 4, 80))
        }
        EventKind::CommitMade { operation, sha, .. } => format!("{} for {}", own(sha), text(operation)),
        EventKind::StateEntered { operation, state, error_type, .. } => {
            let of = operation.as_ref().map(|op| format!("{}: ", text(op))).unwrap_or_default();
            match error_type {
                Some(error) => format!("{of}{} ({})", own(state), own(error)),
                None => format!("{of}{}", own(state)),
            }
        }
        EventKind::StateMessage { message } => text(message),
        EventKind::TasksRegistered { .. } => "the tasks of the campaign".to_owned(),
        EventKind::QuestionAnswered { question, answer } => {
            format!("{} — {}", text(question), text(answer))
        }
        EventKind::PlanLoaded { plan } => {
            format!(
                "{}, commit {}",
                list::count(plan.phases.len() as u64, "phase", "phases"),
                own(&plan.commit)
            )
        }
        EventKind::Override { by, what, rationale } => override_text(what, by, rationale),
        EventKind::Notified { sink } => format!("through {}", own(sink)),
        EventKind::Deferred { operation, until } => {
            format!("{} until {}", text(operation), own(&until_words(until, time)))
        }
    }
}

/// The rationale of an override for which nobody gave one.
const NO_RATIONALE: &str = "none given";
/// What is recorded now.
const NO_REASON: &str = "no reason given";

fn override_text(what: &SafeText, by: &SafeText, rationale: &SafeText) -> String {
    let (what, by) = (what.line(TEXT_CHARS_MAX), by.line(TEXT_CHARS_MAX));
    let why = match rationale.raw() {
        NO_RATIONALE | NO_REASON | "" => NO_REASON.to_owned(),
        _ => format!("because: {}", rationale.line(TEXT_CHARS_MAX)),
    };
    let what = match what.strip_prefix("--confirm ") {
        Some(run) => format!("confirmed {run}"),
        None => what,
    };
    match by.as_str() {
        "command line" => format!("{what} on the command line, {why}"),
        _ => format!("{what} by {by}, {why}"),
    }
}

/// `exit 1`, `SIGKILL`.
pub(super) fn exit_or_signal(exit: Option<i64>, signal: Option<&str>) -> Option<String> {
    match (signal, exit) {
        (Some(signal), _) => Some(SafeText::from(signal).line(20)),
        (None, Some(exit)) => Some(format!("exit {exit}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_says_who_and_why() {
        let cases = [
            (
                "--confirm r-1825",
                "command line",
                NO_REASON,
                "confirmed r-1825 on the command line, no reason given",
            ),
            (
                "--confirm r-1825",
                "command line",
                "none given",
                "confirmed r-1825 on the command line, no reason given",
            ),
            (
                "--on unknown=retry",
                "command line",
                "a flaky host",
                "--on unknown=retry on the command line, because: a flaky host",
            ),
            (
                "--confirm r-1825",
                "nightly",
                "not there yet",
                "confirmed r-1825 by nightly, because: not there yet",
            ),
        ];
        for (what, by, rationale, want) in cases {
            let kind = EventKind::Override { by: by.into(), what: what.into(), rationale: rationale.into() };
            assert_eq!(event_text(&kind), want);
        }
    }
}
