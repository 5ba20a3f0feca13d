//! What the policy says about a report.

use backstop_core::{Action, Class, Decision, Failure, Fault, Machine, Policy, Reason, Verdict};
use backstop_runtime::admission::UNTIL_UNFROZEN;
use std::sync::Arc;
use std::time::Duration;

/// More earlier attempts than this change nothing.
const EARLIER_MAX: u32 = backstop_core::ATTEMPTS_MAX;

/// A report, as the policy sees it.
#[derive(Debug, Clone)]
pub struct Case<'c> {
    /// What it is.
    pub fault: &'c Fault,
    /// Which attempt failed, counted from 1 per task and class: rate limits by themselves.
    pub attempt: u32,
    /// A random number from 0 up to 1.
    pub random: f64,
    /// Why it must not be repeated, where that is so.
    pub unrepeatable: Option<&'c str>,
    /// Whether there is a part of the result.
    pub has_partial: bool,
    /// What the task can do instead, as it says itself.
    pub fallback: Option<&'c str>,
    /// Whether every recovery is turned off.
    pub disabled: bool,
    /// Whether no new work may begin in the project.
    pub frozen: bool,
}

/// Lays a report before the attempt machine, as the attempt that it is: those before it failed of
/// the same.
pub fn decide(policy: Policy, case: &Case<'_>) -> Verdict {
    let mut machine = Machine::new(Arc::new(policy)).disabled(case.disabled);
    let mut failure = Failure { random: case.random, ..Failure::new(case.fault, Duration::ZERO) };
    for _ in 1..case.attempt.min(EARLIER_MAX) {
        machine.begin();
        machine.failed(&failure);
    }
    failure.unrepeatable = case.unrepeatable;
    machine.begin();
    let mut verdict = machine.failed(&failure);
    if case.frozen && verdict.decision.action.goes_on() {
        let why = format!("{}; but the project is frozen, and nothing new begins", verdict.decision.why);
        verdict.decision = Decision { action: Action::Defer { until: UNTIL_UNFROZEN.to_owned() }, why };
    }
    if let Some(to) = case.fallback.filter(|_| verdict.decision.action == Action::Surface)
        && has_other_way(case.fault.reason)
    {
        let why = format!("{}; the task has a fallback", verdict.decision.why);
        verdict.decision = Decision { action: Action::Fallback { to: to.to_owned() }, why };
    }
    if verdict.decision.action == Action::Surface && case.has_partial && !is_dangerous(case.fault.reason) {
        let why = format!("{}; what there is of the result is used", verdict.decision.why);
        verdict.decision = Decision { action: Action::UsePartial, why };
    }
    verdict
}

/// Whether another way to the same result can help: not where the request itself is wrong, and not
/// before a person has looked at what is dangerous.
fn has_other_way(reason: Reason) -> bool {
    reason.class() != Class::User && !is_dangerous(reason)
}

/// The reasons whose failures count as attempts together with `reason`: what is transient counts as
/// one, so that two kinds of trouble in turn do not retry for ever. Rate limits have attempts of
/// their own, and so has every other reason.
pub fn counted_together(reason: Reason) -> Vec<Reason> {
    let is_transient = |reason: Reason| reason.class() == Class::Transient && reason != Reason::RateLimited;
    if is_transient(reason) {
        Reason::all().filter(|other| is_transient(*other)).collect()
    } else {
        vec![reason]
    }
}

/// Whether nothing of it may be used before a person has looked.
pub(super) fn is_dangerous(reason: Reason) -> bool {
    matches!(reason, Reason::SecurityBreach | Reason::DataLoss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::profile;

    fn verdict(reason: Reason, attempt: u32, has_partial: bool) -> Verdict {
        let fault = Fault::new(reason);
        let case = Case {
            fault: &fault,
            attempt,
            random: 0.0,
            unrepeatable: None,
            has_partial,
            fallback: None,
            disabled: false,
            frozen: false,
        };
        decide(profile("task").unwrap(), &case)
    }

    fn waits(reason: Reason) -> Vec<u64> {
        let wait = |attempt| match verdict(reason, attempt, false).decision.action {
            Action::Retry { after, attempt: next, .. } => {
                assert_eq!(next, attempt + 1);
                Some(after.as_secs())
            }
            _ => None,
        };
        (1..).map_while(wait).collect()
    }

    #[test]
    fn the_numbers_are_the_seeds() {
        assert_eq!(waits(Reason::NetworkTransient), [4, 8]);
        assert_eq!(waits(Reason::Timeout), [4, 8]);
        assert_eq!(waits(Reason::RateLimited), [4, 8, 16, 32]);
        for reason in Reason::all().filter(|reason| reason.class() != Class::Transient) {
            assert!(waits(reason).is_empty(), "{reason}");
        }
    }

    #[test]
    fn what_there_is_is_used_when_it_is_over_and_not_before() {
        assert!(verdict(Reason::Timeout, 1, true).decision.action.goes_on());
        assert_eq!(verdict(Reason::Timeout, 3, true).decision.action, Action::UsePartial);
        assert_eq!(verdict(Reason::AuthError, 1, true).decision.action, Action::UsePartial);
        assert_eq!(verdict(Reason::DataLoss, 1, true).decision.action, Action::Surface);
        assert!(matches!(verdict(Reason::DiskFull, 1, true).decision.action, Action::Defer { .. }));
        for attempt in [4, 1_000, u32::MAX] {
            assert!(!verdict(Reason::Timeout, attempt, false).decision.action.goes_on());
        }
    }

    #[test]
    fn a_fallback_of_the_task_applies_when_retries_are_over_and_can_help() {
        let action = |reason, attempt| {
            let fault = Fault::new(reason);
            let case = Case {
                fault: &fault,
                attempt,
                random: 0.0,
                unrepeatable: None,
                has_partial: true,
                fallback: Some("cached result"),
                disabled: false,
                frozen: false,
            };
            decide(profile("task").unwrap(), &case).decision.action
        };
        let fallback = Action::Fallback { to: "cached result".to_owned() };
        assert!(matches!(action(Reason::Timeout, 1), Action::Retry { .. }));
        assert_eq!(action(Reason::Timeout, 3), fallback);
        assert_eq!(action(Reason::NetworkPermanent, 1), fallback);
        assert_eq!(
            action(Reason::InvalidUsage, 1),
            Action::UsePartial,
            "what the user typed is wrong on every way"
        );
        assert_eq!(action(Reason::SecurityBreach, 1), Action::Surface);
    }

    #[test]
    fn what_is_transient_counts_together_and_rate_limits_by_themselves() {
        let together = counted_together(Reason::Timeout);
        assert!(together.contains(&Reason::NetworkTransient) && together.contains(&Reason::Timeout));
        assert!(!together.contains(&Reason::RateLimited));
        assert_eq!(counted_together(Reason::RateLimited), [Reason::RateLimited]);
        assert_eq!(counted_together(Reason::AuthError), [Reason::AuthError]);
    }

    #[test]
    fn nothing_is_tried_again_in_a_frozen_project() {
        let case = |reason| {
            let fault = Fault::new(reason);
            let case = Case {
                fault: &fault,
                attempt: 1,
                random: 0.0,
                unrepeatable: None,
                has_partial: true,
                fallback: None,
                disabled: false,
                frozen: true,
            };
            decide(profile("task").unwrap(), &case).decision
        };
        let decision = case(Reason::Timeout);
        assert!(matches!(decision.action, Action::Defer { .. }), "{decision:?}");
        assert!(decision.why.contains("frozen"));
        assert_eq!(case(Reason::AuthError).action, Action::UsePartial, "what is over stays over");
    }

    #[test]
    fn what_cannot_be_counted_is_not_repeated() {
        let fault = Fault::new(Reason::Timeout);
        let case = Case {
            fault: &fault,
            attempt: 1,
            random: 0.0,
            unrepeatable: Some("attempts cannot be counted"),
            has_partial: false,
            fallback: None,
            disabled: false,
            frozen: false,
        };
        let decision = decide(profile("task").unwrap(), &case).decision;
        assert_eq!((decision.action, decision.why.as_str()), (Action::Surface, "attempts cannot be counted"));
    }
}
