//! The six profiles, as data. Every number of attempts and every delay is in this file.
//!
//! Where a profile names a whole class, reasons whose cure is a change that the surface cannot make
//! are excluded by name: repeating those unchanged never works.

use crate::policy::{Cell, Exhausted, How, LimitWaits, On, Policy, World};
use crate::{Backoff, Class, Delays, Jitter, Reason};
use std::borrow::Cow;
use std::time::Duration;

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn doubling(base: Duration, cap: Duration, from: u32, jitter: Jitter) -> Backoff {
    Backoff { delays: Delays::Exponential { base, cap, from }, jitter }
}

fn cell(on: On, attempts: u32) -> Cell {
    Cell { on, attempts, backoff: None, how: How::Again }
}

const fn reasons(list: &'static [Reason]) -> On {
    On::Reasons(Cow::Borrowed(list))
}

const HOUR: Duration = Duration::from_secs(3600);

/// Reasons that need another request or another subset: the same command fails again.
const NEEDS_A_CHANGE: &[Reason] = &[Reason::ContextOverflow, Reason::PartialSuccess];

/// Reasons that no repetition of a tool call cures, besides invalid parameters, not found and
/// permission.
const NEVER_AGAIN: &[Reason] = &[
    Reason::InvalidParameters,
    Reason::InvalidUsage,
    Reason::ToolNotFound,
    Reason::PermissionDenied,
    Reason::AuthError,
    Reason::QuotaExhausted,
    Reason::ContentPolicy,
    Reason::Validation,
    Reason::NetworkPermanent,
    Reason::DependencyMissing,
    Reason::BudgetExhausted,
    Reason::StuckDetected,
    Reason::StateInvalid,
    Reason::Interrupted,
    Reason::SecurityBreach,
    Reason::DataLoss,
    Reason::ContextOverflow,
    Reason::PartialSuccess,
];

/// Reasons that halt a plan without a retry. A `file_conflict` of an integration halts it too, but
/// only the orchestrator can tell: a command in a phase may have a conflict of its own.
const HALTS: &[Reason] = &[
    Reason::AuthError,
    Reason::QuotaExhausted,
    Reason::DependencyMissing,
    Reason::CircularDependency,
    Reason::PlanInvalid,
    Reason::StateInvalid,
    Reason::BudgetExhausted,
    Reason::StuckDetected,
    Reason::Interrupted,
    Reason::SecurityBreach,
    Reason::DataLoss,
];

/// Reasons from outside that a phase waits out without using its one retry.
const WORLDS_TROUBLE: &[Reason] = &[
    Reason::RateLimited,
    Reason::NetworkTransient,
    Reason::ServiceDown,
    Reason::ResourceContention,
    Reason::DiskFull,
];

/// The names of the profiles.
pub const PROFILES: &[&str] = &["command", "tool", "request", "task", "phase", "state"];

/// A profile by its name.
pub fn profile(name: &str) -> Option<Policy> {
    let (name, cells, plain_attempts, backoff) = match name {
        "command" => (
            "command",
            vec![cell(reasons(NEEDS_A_CHANGE), 1), cell(On::Class(Class::Transient), 4), cell(On::Any, 1)],
            1,
            doubling(millis(1000), millis(60_000), 0, Jitter::Symmetric(20)),
        ),
        "tool" => (
            "tool",
            vec![cell(reasons(NEVER_AGAIN), 1), cell(On::Any, 3)],
            3,
            Backoff {
                delays: Delays::Fixed(vec![millis(0), millis(1000), millis(2000)]),
                jitter: Jitter::None,
            },
        ),
        "request" => (
            "request",
            vec![
                cell(reasons(&[Reason::NetworkTransient]), 4),
                Cell { how: How::Guarded, ..cell(reasons(&[Reason::RateLimited]), 5) },
                Cell { how: How::Compressed(50), ..cell(reasons(&[Reason::ContextOverflow]), 2) },
            ],
            4,
            doubling(millis(100), millis(30_000), 0, Jitter::Symmetric(20)),
        ),
        "task" => (
            "task",
            vec![
                cell(reasons(&[Reason::RateLimited]), 5),
                cell(reasons(NEEDS_A_CHANGE), 1),
                cell(On::Class(Class::Transient), 3),
                cell(On::Any, 1),
            ],
            1,
            doubling(millis(2000), millis(300_000), 1, Jitter::Additive(10)),
        ),
        "phase" => (
            "phase",
            vec![Cell { how: How::Halt, ..cell(reasons(HALTS), 1) }, cell(On::Any, 2)],
            2,
            Backoff::none(),
        ),
        "state" => (
            "state",
            vec![
                cell(reasons(&[Reason::FlakyTest]), 3),
                cell(reasons(NEEDS_A_CHANGE), 1),
                cell(On::Class(Class::Transient), 2),
                cell(On::Any, 1),
            ],
            1,
            Backoff { delays: Delays::Fixed(vec![millis(250)]), jitter: Jitter::None },
        ),
        _ => return None,
    };
    let is_phase = name == "phase";
    Some(Policy {
        name: Cow::Borrowed(name),
        cells,
        plain_attempts,
        backoff,
        world: is_phase.then(|| World {
            reasons: Cow::Borrowed(WORLDS_TROUBLE),
            // A network that is cut for an hour is survived.
            times: 20,
            times_worked: 5,
            total: 2 * HOUR,
            backoff: doubling(millis(15_000), millis(600_000), 0, Jitter::Symmetric(20)),
            limits: LimitWaits {
                times: 4,
                backoff: doubling(millis(15_000), HOUR, 0, Jitter::Symmetric(20)),
            },
        }),
        starts_max: None,
        wait_max: if is_phase { 6 * HOUR } else { HOUR },
        learn: false,
        exhausted: if is_phase { Exhausted::Halt } else { Exhausted::Surface },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every profile against every reason: attempts, waits, what else. This table is the seeds'
    /// numbers.
    #[test]
    fn every_profile_for_every_reason() {
        let mut table = String::new();
        for name in PROFILES {
            let policy = profile(name).unwrap();
            for reason in Reason::all() {
                let allowed = policy.allowance(reason);
                let world = policy.world.as_ref().is_some_and(|w| w.reasons.contains(&reason));
                let waits: Vec<String> = (1..allowed.attempts)
                    .map(|failed| format!("{}ms", allowed.backoff.wait(failed, 0.5).plain.as_millis()))
                    .collect();
                let how = match allowed.how {
                    How::Again if allowed.attempts == 1 => String::new(),
                    how => format!(" {how:?}"),
                };
                let world = if world { " and waits outside" } else { "" };
                let waits = waits.join(" ");
                writeln!(table, "{name:8} {:22} {} {waits}{how}{world}", reason.code(), allowed.attempts)
                    .unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn the_numbers_of_the_seeds() {
        let waits = |name: &str, reason: Reason| {
            let policy = profile(name).unwrap();
            let allowed = policy.allowance(reason);
            let waits: Vec<u64> = (1..allowed.attempts)
                .map(|failed| allowed.backoff.wait(failed, 0.5).plain.as_millis() as u64)
                .collect();
            (allowed.attempts, waits)
        };
        // The skill manager: three attempts, 0 s then 1 s between them; 2 s where attempts are
        // raised.
        assert_eq!(waits("tool", Reason::ToolFailed), (3, vec![0, 1000]));
        assert_eq!(waits("tool", Reason::InvalidParameters).0, 1);
        assert_eq!(waits("tool", Reason::ToolNotFound).0, 1);
        assert_eq!(waits("tool", Reason::PermissionDenied).0, 1);
        let raised = profile("tool").unwrap().with_attempts(4);
        assert_eq!(raised.allowance(Reason::ToolFailed).backoff.wait(3, 0.5).delay, Duration::from_secs(2));
        // GDD: three retries for the network, one compressed one for an overflow, none for what a
        // person must mend.
        assert_eq!(waits("request", Reason::NetworkTransient), (4, vec![100, 200, 400]));
        assert_eq!(waits("request", Reason::ContextOverflow).0, 2);
        assert_eq!(waits("request", Reason::AuthError).0, 1);
        assert_eq!(waits("request", Reason::Validation).0, 1);
        assert_eq!(waits("request", Reason::Unknown).0, 1);
        // The hook: 4 s first, doubling to 300 s; five for a rate limit.
        assert_eq!(waits("task", Reason::NetworkTransient), (3, vec![4000, 8000]));
        assert_eq!(waits("task", Reason::RateLimited), (5, vec![4000, 8000, 16_000, 32_000]));
        // Autobuild: one retry.
        assert_eq!(waits("phase", Reason::TestFailure), (2, vec![0]));
        assert_eq!(waits("phase", Reason::Unknown).0, 2);
        assert_eq!(waits("phase", Reason::DependencyMissing).0, 1);
        // FTL: once more, then structural; flaky tests twice more.
        assert_eq!(waits("state", Reason::NetworkTransient), (2, vec![250]));
        assert_eq!(waits("state", Reason::FlakyTest), (3, vec![250, 250]));
        assert_eq!(waits("command", Reason::NetworkTransient), (4, vec![1000, 2000, 4000]));
        assert_eq!(waits("command", Reason::TestFailure).0, 1);
    }

    #[test]
    fn names_and_profiles_are_the_same_set() {
        for name in PROFILES {
            assert_eq!(profile(name).unwrap().name, *name);
        }
        assert!(profile("comand").is_none());
    }

    #[test]
    fn attempts_can_be_raised_and_turned_off() {
        let policy = profile("command").unwrap();
        assert_eq!(policy.clone().with_attempts(7).allowance(Reason::Timeout).attempts, 7);
        assert_eq!(policy.clone().with_attempts(7).allowance(Reason::TestFailure).attempts, 1);
        assert_eq!(policy.with_attempts(1).allowance(Reason::Timeout).attempts, 1);
        let phase = profile("phase").unwrap().with_attempts(1);
        assert!(phase.world.is_none());
    }
}
