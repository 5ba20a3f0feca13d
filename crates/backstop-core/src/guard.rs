//! The guard: the shared rate-limit state of one provider, until when nothing may be sent, and why.
//! Pure: the time is an argument.
//!
//! A guard is only ever extended; time opens it, or a person. It must not wait: its callers do.

use crate::{Hints, Timestamp};
use std::time::Duration;

/// How long a limit holds for which no end is stated.
pub const UNNAMED_WAIT: Duration = Duration::from_secs(30);
/// The longest time for which a guard is closed, whatever an answer says: a week, because some
/// subscriptions have windows of that length.
pub const CLOSED_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Waiters are spread over this share of their wait, in percent, after the guard has opened,
const SPREAD_PERCENT: u32 = 20;
/// but over at most this long.
const SPREAD_MAX: Duration = Duration::from_secs(1);

/// A closed guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The time of the answer that closed it.
    pub learned_at: Timestamp,
    /// The time at which it opens.
    pub until: Timestamp,
    /// What closed it, in words.
    pub why: String,
}

impl Closed {
    /// How long it is still closed. After the clock was set back, that is never longer than at
    /// first.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now).min(self.until.since(self.learned_at))
    }

    /// Whether it is still closed.
    pub fn holds(&self, now: Timestamp) -> bool {
        !self.left(now).is_zero()
    }
}

/// The closing that an answer asks for. `None` if the answer limits nothing.
pub fn closed_by(hints: &Hints, status: Option<u16>, now: Timestamp) -> Option<Closed> {
    let window = hints
        .windows
        .iter()
        .filter(|w| w.is_closed())
        .filter(|w| w.resets_in.is_none_or(|reset| !reset.is_zero()))
        .max_by_key(|w| w.resets_in.unwrap_or(UNNAMED_WAIT));
    // For a window without a stated end the server's wait counts; without that, a fixed time.
    let unnamed = hints.retry_after.is_none().then_some(UNNAMED_WAIT);
    let from_window =
        window.and_then(|w| Some((w.resets_in.or(unnamed)?, format!("window {} is used up", w.name))));
    let asked = hints
        .retry_after
        .filter(|wait| !wait.is_zero())
        .map(|wait| (wait, "the server asks to wait".to_owned()));
    let refused = matches!(status, Some(429)).then(|| (UNNAMED_WAIT, "status 429 without a time".to_owned()));
    // The longest wait counts. A refusal without a time counts only where nothing else names one.
    let (wait, why) = from_window.into_iter().chain(asked).max_by_key(|(wait, _)| *wait).or(refused)?;
    let wait = wait.min(CLOSED_MAX);
    Some(Closed { learned_at: now, until: now.after(wait), why })
}

/// The stricter of two closings: the one that ends later. An outdated, weaker answer never loosens
/// a newer one.
pub fn stricter(known: Option<Closed>, learned: Option<Closed>, now: Timestamp) -> Option<Closed> {
    let known = known.filter(|closed| closed.holds(now));
    match (known, learned) {
        (Some(known), Some(learned)) if known.left(now) >= learned.left(now) => Some(known),
        (known, None) => known,
        (_, learned) => learned,
    }
}

/// How long a waiter waits: until the guard opens, and then a little longer depending on its place
/// in the queue, so that not all send at once. The places are spread evenly, however many there
/// are.
pub fn wait(closed: &Closed, place: u64, now: Timestamp) -> Duration {
    let left = closed.left(now);
    let span =
        closed.until.since(closed.learned_at).mul_f64(f64::from(SPREAD_PERCENT) / 100.0).min(SPREAD_MAX);
    // Multiples of the golden ratio modulo one are spread evenly.
    let share = (place as f64 * 0.618_033_988_749_895).fract();
    left + span.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_755_780_000_000 + seconds * 1000)
    }

    fn headers(list: &[(&str, &str)]) -> Hints {
        let owned: Vec<_> = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Hints::read(&owned, None, at(0))
    }

    #[test]
    fn the_most_restrictive_within_an_answer_counts() {
        let hints = headers(&[
            ("retry-after", "5"),
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2025-08-21T12:41:00Z"),
            ("anthropic-ratelimit-tokens-remaining", "100"),
            ("anthropic-ratelimit-tokens-reset", "2025-08-21T13:40:00Z"),
        ]);
        let closed = closed_by(&hints, Some(429), at(0)).unwrap();
        assert_eq!((closed.left(at(0)).as_secs(), closed.why.as_str()), (60, "window requests is used up"));
    }

    #[test]
    fn what_limits_nobody_closes_nothing() {
        for list in [
            &[("x-ratelimit-remaining", "7"), ("x-ratelimit-reset", "1755780060")][..],
            &[("retry-after", "0")],
        ] {
            assert_eq!(closed_by(&headers(list), Some(200), at(0)), None, "{list:?}");
        }
        // A window that has passed is no limit, even with nothing left in it.
        let passed = headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1655780060")]);
        assert_eq!(closed_by(&passed, Some(200), at(0)), None);
    }

    #[test]
    fn a_limit_without_an_end_has_a_bounded_one() {
        assert_eq!(closed_by(&Hints::default(), Some(429), at(0)).unwrap().left(at(0)), UNNAMED_WAIT);
        let closed =
            closed_by(&headers(&[("retry-after", "1000000000000000000000000000000")]), None, at(0)).unwrap();
        assert_eq!(closed.left(at(0)), CLOSED_MAX);
    }

    #[test]
    fn a_stale_answer_never_loosens() {
        let long = closed_by(&headers(&[("retry-after", "60")]), Some(429), at(0));
        let short = closed_by(&headers(&[("retry-after", "5")]), Some(429), at(10));
        let kept = stricter(long.clone(), short.clone(), at(10)).unwrap();
        assert_eq!(kept.left(at(10)).as_secs(), 50);
        assert_eq!(stricter(long.clone(), None, at(10)), long);
        assert_eq!(stricter(long, short.clone(), at(70)), short);
    }

    #[test]
    fn a_clock_that_jumps_closes_for_no_longer_than_it_was_told() {
        let closed = closed_by(&headers(&[("retry-after", "60")]), Some(429), at(0)).unwrap();
        assert_eq!(closed.left(at(-864_000)).as_secs(), 60);
        assert!(!closed.holds(at(864_000)));
    }

    #[test]
    fn waiters_wake_spread_out_and_not_late() {
        let closed = closed_by(&headers(&[("retry-after", "10")]), Some(429), at(0)).unwrap();
        let mut waits: Vec<u128> = (0..16).map(|place| wait(&closed, place, at(0)).as_millis()).collect();
        waits.sort_unstable();
        assert!(waits[0] == 10_000 && waits[15] < 11_000);
        assert!(waits.windows(2).all(|pair| (10..200).contains(&(pair[1] - pair[0]))), "{waits:?}");
    }

    proptest! {
        #[test]
        fn closing_is_bounded_and_never_loosened(
            waits in prop::collection::vec((0u64..1_000_000, 0i64..10_000), 1..20),
        ) {
            let mut guard: Option<Closed> = None;
            let mut now = 0;
            for (wait, step) in waits {
                now += step;
                let before = guard.as_ref().map_or(Duration::ZERO, |g| g.left(at(now)));
                let learned = closed_by(&headers(&[("retry-after", &wait.to_string())]), Some(429), at(now));
                guard = stricter(guard, learned, at(now));
                let after = guard.as_ref().map_or(Duration::ZERO, |g| g.left(at(now)));
                prop_assert!(after >= before && after <= CLOSED_MAX);
            }
        }
    }
}
