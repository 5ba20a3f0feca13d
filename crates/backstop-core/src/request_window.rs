//! How many requests a provider still takes in its current window, as its answers say.
//!
//! A provider that names its limit with each answer is not sent more than that: a request takes one
//! of what is left before it is sent, and waits for the next window where nothing is left. As long
//! as no answer is known, one request is sent at a time. Pure: the time is an argument; whoever
//! stores a [`RequestWindow`] changes it in one transaction, so that many processes share it.

use crate::{Hints, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long others wait for the answer to a request while nothing is known of a limit.
const FIRST_ALONE_MAX: Duration = Duration::from_secs(1);
/// A window that resets later than this is a quota, whose end the guard knows.
const WINDOW_MAX: Duration = Duration::from_secs(120);
/// A new window is taken to be at least as long until an answer says how long it is.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// How long a request may be on its way to the provider. One that was taken in one window and has
/// no answer yet may be counted in the next for so long.
const SENDING_MAX: Duration = Duration::from_secs(2);
/// How many requests without an answer are known at most; the oldest are forgotten.
const SENDING_COUNT_MAX: usize = 512;
/// How long it is believed that a provider names no limit.
const UNLIMITED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The end of a window is rounded by the provider and measured here.
const MARGIN: Duration = Duration::from_millis(5);
/// The name of the window that counts requests.
const REQUESTS: &str = "requests";

/// What is known of the window of an account and model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestWindow {
    /// A request was sent without anything being known.
    Asking(#[serde(with = "millis")] Timestamp),
    /// The provider named no limit, at this time.
    Unlimited(#[serde(with = "millis")] Timestamp),
    /// The provider names a limit.
    Limited(LimitedWindow),
}

/// A window of which the provider names limit, rest and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitedWindow {
    limit: u64,
    left: u64,
    /// The window before ended then at the latest.
    #[serde(with = "millis")]
    ended: Timestamp,
    /// This one ends then at the latest, and at the earliest where an answer has said when.
    #[serde(with = "millis")]
    resets_at: Timestamp,
    ends_from_ms: Option<i64>,
    length_ms: u64,
    /// The number of the first request of this window, and of the next request.
    first: u64,
    next: u64,
    /// Requests without an answer, with the time at which each was let through.
    sending: Vec<(u64, i64)>,
}

/// What a request does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowStep {
    /// It is sent, as the request of this number.
    Go(u64),
    /// It asks again after so long, or when an answer has arrived.
    Wait(Duration),
}

/// What an answer says of the window that counts requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestsLeft {
    limit: u64,
    left: u64,
    resets_in: Duration,
}

impl RequestsLeft {
    /// Reads it from the hints of an answer; none where a limit, what is left or the end is
    /// missing.
    pub fn read(hints: &Hints) -> Option<Self> {
        let window = hints.windows.iter().find(|window| window.name == REQUESTS)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Its range is looked at.
        let whole = |number: f64| (0.0..1e12).contains(&number).then_some(number as u64);
        let limit = window.limit.and_then(whole)?.max(1);
        let left = window.remaining.and_then(whole)?.min(limit);
        let resets_in = window.resets_in?;
        let is_window = !resets_in.is_zero() && resets_in <= WINDOW_MAX;
        is_window.then_some(Self { limit, left, resets_in })
    }

    /// The end of the window, if the answer was written at `at`.
    fn end(&self, at: Timestamp) -> Timestamp {
        at.after(self.resets_in)
    }
}

impl RequestWindow {
    /// Takes one of the requests that are left, if there is one. Gives what is known from then on.
    pub fn take(known: Option<Self>, now: Timestamp) -> (Self, WindowStep) {
        match known {
            Some(Self::Unlimited(at)) if now.since(at) < UNLIMITED_FOR => {
                (Self::Unlimited(at), WindowStep::Go(0))
            }
            Some(Self::Asking(since)) if now >= since && now.since(since) < FIRST_ALONE_MAX => {
                let left = FIRST_ALONE_MAX.saturating_sub(now.since(since));
                (Self::Asking(since), WindowStep::Wait(left))
            }
            Some(Self::Limited(mut window)) => {
                let step = window.take(now);
                (Self::Limited(window), step)
            }
            // The next one is let through alone, too.
            _ => (Self::Asking(now), WindowStep::Go(0)),
        }
    }

    /// Learns from the answer to a request, by its number.
    pub fn learn(known: Option<Self>, number: u64, said: Option<RequestsLeft>, now: Timestamp) -> Self {
        match (known, said) {
            (Some(Self::Limited(mut window)), said) => {
                window.learn(number, said, now);
                Self::Limited(window)
            }
            (_, Some(said)) => Self::Limited(LimitedWindow {
                limit: said.limit,
                left: said.left,
                ended: Timestamp::from_millis(0),
                resets_at: said.end(now).after(MARGIN),
                ends_from_ms: Some(said.end(now.before(SENDING_MAX)).as_millis()),
                length_ms: millis_of(said.resets_in),
                first: 1,
                next: 1,
                sending: Vec::new(),
            }),
            (_, None) => Self::Unlimited(now),
        }
    }

    /// Whether an answer without a limit says something new.
    pub fn is_asking(&self) -> bool {
        matches!(self, Self::Asking(_))
    }
}

impl LimitedWindow {
    fn take(&mut self, now: Timestamp) -> WindowStep {
        let oldest = now.before(SENDING_MAX).as_millis();
        self.sending.retain(|(_, at)| (oldest..=now.as_millis()).contains(at));
        // A window that would end later than any was noted under another clock.
        if self.resets_at <= now || self.resets_at.since(now) > WINDOW_MAX + WINDOW_MIN {
            // The end that no answer has said is a guess: those under way know better.
            let own = self.sending.iter().filter(|(number, _)| *number >= self.first);
            if self.ends_from_ms.is_none()
                && let Some(oldest) = own.map(|(_, at)| *at).min()
            {
                return wait_for_arrival(oldest, now);
            }
            self.begin(now);
        }
        if self.left == 0 {
            return WindowStep::Wait(self.resets_at.since(now).max(Duration::from_millis(1)));
        }
        // Those of the window before may arrive only now.
        let late = self.sending.iter().filter(|(number, _)| *number < self.first);
        let oldest_late = late.clone().map(|(_, at)| *at).min();
        if let Some(at) = oldest_late.filter(|_| usize_of(self.left) <= late.count()) {
            return wait_for_arrival(at, now);
        }
        self.left -= 1;
        let number = self.next;
        self.next += 1;
        if self.sending.len() >= SENDING_COUNT_MAX {
            self.sending.remove(0);
        }
        self.sending.push((number, now.as_millis()));
        WindowStep::Go(number)
    }

    /// Begins the next window, of which nothing is known yet.
    fn begin(&mut self, now: Timestamp) {
        let ended = if self.ends_from_ms.is_some() { self.resets_at } else { self.ended };
        self.ended = ended.min(now);
        self.left = self.limit;
        self.resets_at = now.after(self.length().max(WINDOW_MIN));
        self.ends_from_ms = None;
        self.first = self.next;
    }

    /// Learns from an answer. When the provider wrote it is not known: it was after the request was
    /// sent, and before now. So the window that it tells of ends between two times, which say which
    /// window it is as long as a window is longer than a request and its answer are under way.
    fn learn(&mut self, number: u64, said: Option<RequestsLeft>, now: Timestamp) {
        let at = self.sending.iter().position(|(sent, _)| *sent == number);
        let sent = at.map(|at| Timestamp::from_millis(self.sending.remove(at).1));
        let Some(said) = said else { return };
        let ends_from = said.end(sent.unwrap_or_else(|| now.before(SENDING_MAX)).min(now));
        let ends_by = said.end(now).after(MARGIN);
        if ends_from <= self.ended {
            return; // It was counted in the window before.
        }
        match self.ends_from_ms {
            // An answer that came earlier was of a later window.
            Some(known) if ends_by.as_millis() < known => return,
            Some(_) if ends_from > self.resets_at => {
                self.begin(now);
                self.resets_at = ends_by;
                self.ends_from_ms = Some(ends_from.as_millis());
            }
            Some(known) if sent.is_some() => {
                self.resets_at = self.resets_at.min(ends_by);
                self.ends_from_ms = Some(known.max(ends_from.as_millis()));
            }
            Some(_) => {}
            None => {
                self.resets_at = ends_by;
                self.ends_from_ms = Some(ends_from.as_millis());
            }
        }
        if number < self.first {
            // It was taken in the window before, and counted in this one.
            self.left = self.left.saturating_sub(1);
        }
        // Requests under way are counted here and not there yet: the smaller number is true.
        self.left = self.left.min(said.left);
        self.limit = said.limit;
        self.length_ms = self.length_ms.max(millis_of(said.resets_in));
    }

    fn length(&self) -> Duration {
        Duration::from_millis(self.length_ms)
    }
}

/// Waits until a request that was sent at this time has arrived or never will.
fn wait_for_arrival(sent: i64, now: Timestamp) -> WindowStep {
    let arrived = Timestamp::from_millis(sent).after(SENDING_MAX);
    WindowStep::Wait(arrived.since(now).max(Duration::from_millis(1)))
}

fn millis_of(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A time as a number.
mod millis {
    use crate::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(at.as_millis())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(from).map(Timestamp::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).after(Duration::from_millis(millis))
    }

    fn said(limit: u64, left: u64, resets_in_ms: u64) -> Option<RequestsLeft> {
        Some(RequestsLeft { limit, left, resets_in: Duration::from_millis(resets_in_ms) })
    }

    /// What many processes share.
    #[derive(Default)]
    struct Shared(Option<RequestWindow>);

    impl Shared {
        fn take(&mut self, now: Timestamp) -> Option<u64> {
            let (known, step) = RequestWindow::take(self.0.take(), now);
            // Stored and read again.
            self.0 = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
            match step {
                WindowStep::Go(number) => Some(number),
                WindowStep::Wait(wait) => {
                    assert!(!wait.is_zero());
                    None
                }
            }
        }

        fn learn(&mut self, number: u64, said: Option<RequestsLeft>, now: Timestamp) {
            self.0 = Some(RequestWindow::learn(self.0.take(), number, said, now));
        }
    }

    #[test]
    fn no_more_is_sent_than_a_window_takes() {
        let mut shared = Shared::default();
        assert!(shared.take(at(0)).is_some(), "the first one goes");
        assert!(shared.take(at(0)).is_none(), "alone");
        shared.learn(0, said(3, 2, 10_000), at(0));
        assert!(shared.take(at(1000)).is_some());
        let under_way = shared.take(at(1000)).unwrap();
        assert!(shared.take(at(2000)).is_none(), "the window is used up");
        shared.learn(under_way, said(3, 1, 9000), at(1000));
        assert!(shared.take(at(2000)).is_none(), "an answer under way gives nothing back");
        let next: Vec<bool> = (0..4).map(|_| shared.take(at(11_000)).is_some()).collect();
        assert_eq!(next, [true, true, true, false], "nor is more sent in the next one");
    }

    #[test]
    fn without_an_answer_one_goes_each_second_and_without_a_limit_all_go() {
        let mut shared = Shared::default();
        let gone: Vec<u64> = (0..3000).step_by(100).filter(|ms| shared.take(at(*ms)).is_some()).collect();
        assert_eq!(gone, [0, 1000, 2000]);
        shared.learn(0, None, at(3000));
        assert!((0..100).all(|_| shared.take(at(3000)).is_some()));
        let later = at(3000).after(UNLIMITED_FOR);
        assert!(shared.take(later).is_some() && shared.take(later).is_none(), "asked for again after a day");
    }

    #[test]
    fn what_is_still_on_its_way_counts_in_the_next_window_too() {
        let mut shared = Shared::default();
        shared.take(at(0));
        shared.learn(0, said(2, 1, 1000), at(0));
        let late = shared.take(at(990)).unwrap();
        assert!(shared.take(at(1010)).is_some(), "a new window has room for two");
        assert!(shared.take(at(1010)).is_none(), "one of which may be the late one's");
        shared.learn(late, said(2, 0, 5), at(1012));
        assert!(shared.take(at(1020)).is_some(), "which was counted in the window before");
        assert!(shared.take(at(1020)).is_none());
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing() {
        let mut shared = Shared::default();
        shared.take(at(10_000_000));
        assert!(shared.take(at(0)).is_some());
        shared.learn(0, said(1, 0, 1000), at(10_000_000));
        assert!(shared.take(at(0)).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// A provider with fixed windows, requests that arrive and are answered late and out of
        /// order: once the limit is known, no window sees more than it takes.
        #[test]
        fn a_window_never_sees_more_than_its_limit(
            limit in 1_u64..6,
            length in 1000_u64..4000,
            offset in 0_u64..4000,
            delays in prop::collection::vec((0_u64..300, 0_u64..300), 25),
        ) {
            let mut shared = Shared::default();
            let number_of = |ms: u64| (ms + offset) / length;
            let mut counted: Vec<u64> = Vec::new();
            let mut on_the_way: Vec<(u64, u64, u64)> = Vec::new();
            let mut answers: Vec<(u64, u64, Option<RequestsLeft>)> = Vec::new();
            let mut delays = delays.into_iter().peekable();
            for now in (0..200_000_u64).step_by(3) {
                on_the_way.sort_unstable();
                while on_the_way.first().is_some_and(|(arrives, ..)| *arrives <= now) {
                    let (_, number, back) = on_the_way.remove(0);
                    counted.push(now);
                    let used = counted.iter().filter(|ms| number_of(**ms) == number_of(now)).count() as u64;
                    prop_assert!(used <= limit, "{used} of {limit} in one window");
                    let resets_in = length - (now + offset) % length;
                    answers.push((now + back, number, said(limit, limit.saturating_sub(used), resets_in)));
                }
                for (_, number, said) in answers.extract_if(.., |(due, ..)| *due <= now) {
                    shared.learn(number, said, at(now));
                }
                // Until the limit is known it cannot be kept.
                let may_take = !matches!(shared.0, Some(RequestWindow::Asking(_)));
                if may_take && let Some((out, back)) = delays.peek().copied() && let Some(number) = shared.take(at(now)) {
                    delays.next();
                    on_the_way.push((now + out, number, back));
                }
                if delays.peek().is_none() && on_the_way.is_empty() && answers.is_empty() {
                    break;
                }
            }
            prop_assert!(delays.peek().is_none(), "all were sent");
        }
    }
}
