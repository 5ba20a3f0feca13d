//! Decides which events of a run become a message: how the run ended, never a single attempt.

use super::{About, Message};
use backstop_core::{Event, EventKind, Fault, Outcome, Reason, SafeText, Severity};
use backstop_report::{Alert, alert};

/// The message about a run that failed, halted or was deferred. `None` if it succeeded, was stopped
/// by a person or goes on, or if it is a part of another run and not critical: that run has its own
/// message. `frozen` is why the project was frozen. The severity that sinks require is not checked
/// here.
pub fn ended(events: &[Event], project: &SafeText, frozen: Option<SafeText>) -> Option<Message> {
    let ending = events.iter().rev().find(|event| {
        matches!(
            event.kind,
            EventKind::RunEnded { .. } | EventKind::RunHalted { .. } | EventKind::RunResumed {}
        )
    })?;
    let (outcome, reason, attempts, next) = match &ending.kind {
        EventKind::RunHalted { reason, resume } => {
            ("halted", *reason, None, Some(SafeText::new(resume.clone())))
        }
        EventKind::RunEnded { outcome: Outcome::Done | Outcome::Interrupted, .. } => return None,
        EventKind::RunEnded { outcome, reason, attempts, next, .. } => {
            (outcome.name(), (*reason)?, Some(*attempts), next.clone())
        }
        _ => return None,
    };
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted { operation, parent, .. } => Some((operation.clone(), parent.is_some())),
        _ => None,
    });
    let (operation, is_inner) = started.unwrap_or_else(|| (SafeText::new(ending.surface.clone()), false));
    let (fault, part) = last_fault(events, reason).unzip();
    let part = part.cloned();
    if is_inner && fault.is_none_or(|fault| fault.severity != Severity::Critical) {
        return None;
    }
    let severity = fault.map_or_else(|| Fault::new(reason).ending_severity(), Fault::ending_severity);
    let fault = fault.map_or_else(|| Fault::new(reason), |fault| fault.clone().renamed(reason));
    let counted =
        || events.iter().filter(|event| matches!(event.kind, EventKind::AttemptStarted { .. })).count();
    let given = Alert {
        severity,
        outcome,
        part: part.filter(|part| *part != operation),
        operation,
        project: project.clone(),
        attempts: attempts.unwrap_or_else(|| u32::try_from(counted()).unwrap_or(u32::MAX)),
        run: Some(ending.run),
        next,
        frozen,
        ..Alert::about(&fault, ending.at)
    };
    Some(Message::new(&alert(&given), About::of(&given)))
}

/// The last fault with this reason, or with a reason that became it when retries were used up, and
/// its operation.
fn last_fault(events: &[Event], reason: Reason) -> Option<(&Fault, &SafeText)> {
    let is = |fault: &Fault| fault.reason == reason || fault.reason.when_exhausted() == Some(reason);
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ErrorClassified { fault, operation, .. } if is(fault) => Some((&**fault, operation)),
        _ => None,
    })
}

impl About {
    /// The properties of an alert.
    pub fn of(alert: &Alert) -> Self {
        Self {
            severity: alert.severity,
            reason: Some(alert.reason),
            outcome: if alert.frozen.is_some() { "frozen" } else { alert.outcome }.to_owned(),
            operation: alert.operation.clone(),
            project: alert.project.clone(),
            run: alert.run,
            at: alert.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{EVENT_SCHEMA, EventId, RunId, Timestamp};

    fn events(kinds: Vec<EventKind>) -> Vec<Event> {
        let run: RunId = "r-7f3a".parse().unwrap();
        let event = |(seq, kind)| Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq },
            run,
            seq,
            at: Timestamp::from_millis(0),
            session: None,
            surface: "exec".into(),
            caller: None,
            kind,
        };
        (1..).zip(kinds).map(event).collect()
    }

    fn started(parent: Option<RunId>) -> EventKind {
        EventKind::RunStarted { operation: "npm ci".into(), folder: None, profile: None, parent }
    }

    fn classified(reason: Reason) -> EventKind {
        let mut fault = Fault::new(reason);
        fault.cause = Some("npm error code ECONNRESET".into());
        EventKind::ErrorClassified { operation: "npm ci".into(), attempt: 1, fault: Box::new(fault) }
    }

    fn ending(outcome: Outcome, reason: Option<Reason>) -> EventKind {
        EventKind::RunEnded { outcome, reason, attempts: 4, duration_ms: 1, exit: Some(1), next: None }
    }

    #[test]
    fn endings_are_told_and_attempts_are_not() {
        let message_of = |kinds| ended(&events(kinds), &"/srv/shop".into(), None);
        let transient = Reason::NetworkTransient;
        // One attempt, and a run that goes on or went well in the end.
        assert_eq!(message_of(vec![started(None), classified(transient)]), None);
        assert_eq!(message_of(vec![started(None), classified(transient), ending(Outcome::Done, None)]), None);
        let halted = EventKind::RunHalted { reason: Reason::AuthError, resume: "backstop run p.md".into() };
        assert_eq!(message_of(vec![started(None), halted.clone(), EventKind::RunResumed {}]), None);
        // A run below another one is an attempt of that one.
        let parent = "r-1111".parse().ok();
        let failed = ending(Outcome::Failed, Some(Reason::NetworkPermanent));
        assert_eq!(message_of(vec![started(parent), failed.clone()]), None);

        let message = message_of(vec![started(None), classified(transient), failed]).unwrap();
        assert_eq!(message.about.severity, Severity::High);
        assert_eq!(message.about.reason, Some(Reason::NetworkPermanent));
        for part in ["npm ci", "ECONNRESET", "network_permanent", "/srv/shop", "backstop explain r-7f3a"] {
            assert!(message.plain.contains(part), "{part}: {}", message.plain);
        }
        let message = message_of(vec![started(None), halted]).unwrap();
        assert!(message.slack.contains("*Next:* `backstop run p.md`"), "{}", message.slack);
        // A medium fault that ends a run is high; a low one stays low.
        let low = message_of(vec![started(None), ending(Outcome::Failed, Some(Reason::Validation))]).unwrap();
        assert_eq!(low.about.severity, Severity::Low);
        let medium =
            message_of(vec![started(None), ending(Outcome::Failed, Some(Reason::TestFailure))]).unwrap();
        assert_eq!(medium.about.severity, Severity::High);
    }
}
