//! The circuit breaker: after several failures in a row attempts are refused for a while, then one
//! probe is let through. Pure: the time is an argument.

use crate::{Name, Reason, Timestamp};
use std::time::Duration;

/// The number of failures in a row that open the breaker.
pub const FAILURES_MAX: u32 = 5;
/// How long it stays open the first time. Doubles with each failed probe.
pub const OPEN_FOR: Duration = Duration::from_secs(30);
/// The longest time that it stays open.
pub const OPEN_MAX: Duration = Duration::from_secs(600);
/// A probe that has not reported back after this long is given up.
pub const PROBE_MAX: Duration = Duration::from_secs(600);

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    /// The number of failures in a row.
    pub failures: u32,
    /// How often it has opened since the last success.
    pub opened: u32,
    /// The time at which it opened, if it is open.
    pub open_since: Option<Timestamp>,
    /// The time at which a probe was let through.
    pub probe_since: Option<Timestamp>,
}

/// A breaker, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerState {
    /// The provider.
    pub provider: Name,
    /// The operation.
    pub operation: String,
    /// The state.
    pub breaker: Breaker,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The answer to whether an attempt may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// The attempt may begin.
    Closed,
    /// The attempt may begin, as the probe.
    Probe,
    /// No attempt may begin for this long.
    Open(Duration),
}

impl Breaker {
    /// Whether a fault of this reason counts: it must say that the other side fails, not that the
    /// request was wrong.
    pub fn counts(reason: Reason) -> bool {
        matches!(
            reason,
            Reason::NetworkTransient | Reason::NetworkPermanent | Reason::ServiceDown | Reason::Timeout
        )
    }

    /// How long it stays open this time.
    fn span(&self) -> Duration {
        OPEN_FOR
            .saturating_mul(1u32.checked_shl(self.opened.saturating_sub(1)).unwrap_or(u32::MAX))
            .min(OPEN_MAX)
    }

    /// Asks whether an attempt may begin. The caller that gets `Probe` must report the result.
    pub fn ask(&mut self, now: Timestamp) -> Pass {
        let Some(since) = self.open_since else { return Pass::Closed };
        // After the clock was set back, the breaker must not stay open longer than intended.
        let left = since.after(self.span()).since(now).min(self.span());
        if !left.is_zero() {
            return Pass::Open(left);
        }
        let probing = self.probe_since.is_some_and(|at| now.since(at) < PROBE_MAX && now >= at);
        if probing {
            return Pass::Open(Duration::from_secs(1));
        }
        self.probe_since = Some(now);
        Pass::Probe
    }

    /// Reports a success.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Reports a failure that counts.
    pub fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        let probe = self.probe_since.take().is_some();
        if probe || (self.open_since.is_none() && self.failures >= FAILURES_MAX) {
            self.opened = self.opened.saturating_add(1);
            self.open_since = Some(now);
        }
    }

    /// The state in one word, for outputs.
    pub fn name(&self, now: Timestamp) -> &'static str {
        match self.clone_and_ask(now) {
            Pass::Closed => "closed",
            Pass::Open(_) if self.probe_since.is_some() => "half-open",
            Pass::Open(_) => "open",
            Pass::Probe => "half-open",
        }
    }

    fn clone_and_ask(&self, now: Timestamp) -> Pass {
        let mut copy = *self;
        copy.ask(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn it_opens_probes_once_and_closes() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(at(0));
            assert_eq!(breaker.ask(at(0)), Pass::Closed);
        }
        breaker.failed(at(0));
        assert_eq!(
            (breaker.ask(at(10)), breaker.name(at(10))),
            (Pass::Open(Duration::from_secs(20)), "open")
        );
        assert_eq!(breaker.name(at(31)), "half-open");
        assert_eq!(breaker.ask(at(31)), Pass::Probe);
        assert!(matches!(breaker.ask(at(31)), Pass::Open(_)), "one probe at a time");
        breaker.failed(at(32));
        assert_eq!(breaker.ask(at(33)), Pass::Open(Duration::from_secs(59)), "twice as long");
        assert_eq!(breaker.ask(at(93)), Pass::Probe);
        breaker.succeeded();
        assert_eq!((breaker.ask(at(94)), breaker.name(at(94))), (Pass::Closed, "closed"));
    }

    #[test]
    fn a_probe_that_never_reports_is_given_up() {
        let mut breaker = Breaker { failures: 5, opened: 1, open_since: Some(at(0)), probe_since: None };
        assert_eq!(breaker.ask(at(40)), Pass::Probe);
        assert!(matches!(breaker.ask(at(600)), Pass::Open(_)));
        assert_eq!(breaker.ask(at(641)), Pass::Probe);
    }

    proptest! {
        #[test]
        fn it_never_stays_open_for_ever(steps in prop::collection::vec((0i64..2_000, any::<bool>()), 1..60)) {
            let mut breaker = Breaker::default();
            let mut now = 0;
            for (step, succeeds) in steps {
                now += step;
                match breaker.ask(at(now)) {
                    Pass::Open(left) => prop_assert!(left <= OPEN_MAX),
                    _ if succeeds => breaker.succeeded(),
                    _ => breaker.failed(at(now)),
                }
            }
            let later = at(now + 2_000);
            prop_assert!(!matches!(breaker.ask(later), Pass::Open(_)));
        }
    }
}
