//! The guard: the shared rate-limit state of one provider, until when nothing may be sent, and why.
//! Pure: the time is an argument.
//!
//! A guard is only ever extended; time opens it, a person, or a probe that is served. It knows the
//! end that the provider stated in a header or a field, however far; a sentence closes it for no
//! longer than whoever read it waits. How long a caller waits is the caller's business. A guard
//! must not wait itself.

use crate::{BootTime, ClockReading, Hints, Name, Sha256, Timestamp};
use std::time::Duration;

/// How many hexadecimal digits an account is known by.
const ACCOUNT_DIGITS: usize = 8;
/// The longest name of a model in a key.
const MODEL_BYTES_MAX: usize = 80;

/// Whose rate limit: a provider's, of one account, for one model. Written `openai`,
/// `openai@1f2e3d4c`, `openai@1f2e3d4c/gpt-5`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardKey {
    /// The provider.
    pub provider: Name,
    /// The account; empty where it is not known, `None` for all accounts.
    account: Option<String>,
    /// The model; empty where it is not known, `None` for all models.
    model: Option<String>,
}

impl GuardKey {
    /// One account of a provider, of which nothing else is known.
    pub fn unknown_account(provider: Name) -> Self {
        Self { provider, account: Some(String::new()), model: Some(String::new()) }
    }

    /// Any account of a provider, and a model that is not known.
    pub fn any_account(provider: Name) -> Self {
        Self { provider, account: None, model: Some(String::new()) }
    }

    /// For the account of this credential. `secret` is random and stays on this machine, so that
    /// nobody can find the credential by trying.
    pub fn with_credential(mut self, secret: &[u8], credential: &str) -> Self {
        let mut digest = Sha256::of(secret);
        digest.update(self.provider.as_str());
        digest.update([0]);
        digest.update(credential);
        self.account = Some(digest.hex()[..ACCOUNT_DIGITS].to_owned());
        self
    }

    /// For this model. A name that no provider would give is passed over. Of `opus[1m]` and
    /// `anthropic/claude-opus-4-1` the model counts, and not its size or who serves it.
    pub fn with_model(mut self, model: &str) -> Self {
        let model = model.split('[').next().unwrap_or_default();
        let model = model.rsplit('/').next().unwrap_or_default();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':');
        if !model.is_empty() && model.len() <= MODEL_BYTES_MAX && model.bytes().all(allowed) {
            self.model = Some(model.to_ascii_lowercase());
        }
        self
    }

    /// The account, where it is known.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref().filter(|account| !account.is_empty())
    }

    /// The model, where it is known.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref().filter(|model| !model.is_empty())
    }

    /// Reads what [`GuardKey`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, model) = text.split_once('/').unwrap_or((text, ""));
        let (provider, account) = rest.split_once('@').unwrap_or((rest, ""));
        Some(Self {
            provider: provider.parse().ok()?,
            account: Some(account.to_owned()),
            model: Some(model.to_owned()),
        })
    }

    /// Whether a limit that was learned under `learned` holds for whoever asks under this key. What
    /// was learned of an unknown account or model may be anybody's, and what was learned of `opus`
    /// holds for every model of that name.
    pub fn is_held_by(&self, learned: &GuardKey) -> bool {
        let fits = |asked: &Option<String>, learned: &Option<String>, is_same: fn(&str, &str) -> bool| match (
            asked, learned,
        ) {
            (None, _) | (_, None) => true,
            (Some(asked), Some(learned)) => learned.is_empty() || is_same(asked, learned),
        };
        self.provider == learned.provider
            && fits(&self.account, &learned.account, |asked, learned| asked == learned)
            && fits(&self.model, &learned.model, is_of_model)
    }
}

/// Whether a limit of the model `learned` holds for who asks for `asked`: the same one, or one of
/// its family (`claude-opus-4-1` of `opus`). A name with a version is no family.
fn is_of_model(asked: &str, learned: &str) -> bool {
    let is_family = learned.bytes().all(|b| b.is_ascii_alphabetic());
    asked == learned || (is_family && asked.split(['-', '.', '_', ':']).any(|part| part == learned))
}

/// All accounts and models of a provider.
impl From<&Name> for GuardKey {
    fn from(provider: &Name) -> Self {
        Self { provider: provider.clone(), account: None, model: None }
    }
}

impl From<&GuardKey> for GuardKey {
    fn from(key: &GuardKey) -> Self {
        key.clone()
    }
}

impl std::fmt::Display for GuardKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.provider)?;
        if let Some(account) = self.account() {
            write!(f, "@{account}")?;
        }
        self.model().map_or(Ok(()), |model| write!(f, "/{model}"))
    }
}

/// How long a limit holds for which no end is stated.
pub const UNNAMED_WAIT: Duration = Duration::from_secs(30);
/// The longest time for which a guard is closed, whatever an answer says: a week, because some
/// subscriptions have windows of that length, and a day to spare.
pub const CLOSED_MAX: Duration = Duration::from_secs(8 * 24 * 3600);
/// How often one caller may try all the same where only a sentence closed the guard: anybody can
/// print one.
pub const PROBE_EVERY: Duration = Duration::from_secs(3600);
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
    /// Whether a sentence closed it, and no header or field: it is probed before its end.
    pub in_words: bool,
}

impl Closed {
    /// How long it is still closed. After the clock was set back, that is never longer than at
    /// first.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now).min(self.until.since(self.learned_at))
    }

    /// The same closing on the wall clock as it is set now; `stamp` is the boot time at which it
    /// was learned.
    pub fn settled(mut self, stamp: Option<BootTime>, now: &ClockReading) -> Self {
        let learned_at = now.settle(self.learned_at, stamp);
        if learned_at != self.learned_at {
            self.until = learned_at.after(self.until.since(self.learned_at));
            self.learned_at = learned_at;
        }
        self
    }

    /// Whether one caller may try although it is closed: a sentence closed it, and nobody has tried
    /// for a while.
    pub fn probe_is_due(&self, last_probe: Option<Timestamp>, now: Timestamp) -> bool {
        // A probe in the future was noted under another clock.
        let last = last_probe.filter(|at| *at <= now && *at > self.learned_at).unwrap_or(self.learned_at);
        self.in_words && self.holds(now) && now.since(last) >= PROBE_EVERY
    }

    /// The same closing, for at most `wait_max` where only a sentence states its end: anybody can
    /// print one, and it must not keep others away for longer than a caller waits.
    pub fn bounded(mut self, wait_max: Duration) -> Self {
        if self.in_words {
            self.until = self.until.min(self.learned_at.after(wait_max));
        }
        self
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
    let unnamed = hints.asked().is_none().then_some(UNNAMED_WAIT);
    let from_window =
        window.and_then(|w| Some((w.resets_in.or(unnamed)?, format!("window {} is used up", w.name))));
    let asked =
        hints.asked().filter(|wait| !wait.is_zero()).map(|wait| (wait, "the server asks to wait".to_owned()));
    // A refusal that names the end of a window, and not what is left in it, means that window.
    let refused = matches!(status, Some(429)).then(|| match hints.unexplained_reset() {
        Some(reset) => (reset, "the window that refused ends then".to_owned()),
        None => (UNNAMED_WAIT, "status 429 without a time".to_owned()),
    });
    // The longest wait counts. A refusal without a time counts only where nothing else names one.
    let (wait, why) = from_window.into_iter().chain(asked).max_by_key(|(wait, _)| *wait).or(refused)?;
    let wait = wait.min(CLOSED_MAX);
    let in_words = hints.is_in_words();
    Some(Closed { learned_at: now, until: now.after(wait), why, in_words })
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

/// A guard, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardState {
    /// Whose it is.
    pub key: GuardKey,
    /// Until when it is closed, and why, if it still is.
    pub closed: Option<Closed>,
    /// The number of waiters that have queued since it closed, those that left included.
    pub queue: u64,
    /// When a caller was last let through to see whether it is still closed.
    pub probed_at: Option<Timestamp>,
    /// The number of answers that it has learned from.
    pub answers: u64,
    /// The number of those answers that closed it.
    pub refusals: u64,
    /// When it last learned something.
    pub updated_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_755_780_000_000 + seconds * 1000)
    }

    fn headers(list: &[(&str, &str)]) -> Hints {
        let owned: Vec<_> = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Hints::read(&owned, None, &Clock::utc(at(0)))
    }

    #[test]
    fn a_limit_holds_for_its_account_and_its_model() {
        let name: Name = "openai".parse().unwrap();
        let unknown = GuardKey::unknown_account(name.clone());
        let mine = unknown.clone().with_credential(b"secret", "sk-1");
        let other = unknown.clone().with_credential(b"secret", "sk-2");
        let small = mine.clone().with_model("gpt-5-mini");
        assert_ne!(mine, other);
        assert_ne!(mine, unknown.clone().with_credential(b"other machine", "sk-1"));
        let everything = GuardKey::from(&name);
        for (asked, learned, holds) in [
            (&mine, &mine, true),
            (&mine, &other, false),
            (&mine, &unknown, true),
            (&unknown, &mine, false),
            (&mine, &small, false),
            (&small, &mine, true),
            (&everything, &mine, true),
            (&everything, &small, true),
        ] {
            assert_eq!(asked.is_held_by(learned), holds, "{asked} {learned}");
            assert_eq!(GuardKey::parse(&learned.to_string()).as_ref(), Some(learned));
        }
        assert!(!mine.to_string().contains("sk-1"));
    }

    #[test]
    fn a_limit_of_a_family_of_models_holds_for_all_of_them() {
        let key = |model: &str| GuardKey::unknown_account("anthropic".parse().unwrap()).with_model(model);
        for (asked, learned, holds) in [
            ("opus", "opus", true),
            ("claude-opus-4-1", "opus", true),
            ("Opus[1m]", "opus", true),
            ("anthropic/claude-opus-4-1", "opus", true),
            ("sonnet", "opus", false),
            ("opusplan", "opus", false),
            ("gpt-5-mini", "gpt-5", false),
            ("opus", "claude-opus-4-1", false),
            // Who names no model may get another one.
            ("", "opus", false),
        ] {
            assert_eq!(key(asked).is_held_by(&key(learned)), holds, "{asked} {learned}");
        }
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
    fn a_clock_that_is_set_back_leaves_what_is_left() {
        let closed = closed_by(&headers(&[("retry-after", "3600")]), Some(429), at(0)).unwrap();
        let boot = |seconds: i64| Some(BootTime { boot: 1, millis: seconds * 1000 });
        let then = ClockReading { wall: at(0), boot: boot(100) };
        let stamp = then.stamp(closed.learned_at);
        // Half an hour later, on a clock that is ten days back.
        let now = ClockReading { wall: at(-864_000), boot: boot(1_900) };
        assert_eq!(closed.clone().settled(stamp, &now).left(now.wall).as_secs(), 1_800);
        let over = ClockReading { wall: at(-864_000), boot: boot(4_000) };
        assert!(!closed.settled(stamp, &over).holds(over.wall));
    }

    #[test]
    fn only_what_a_sentence_closed_is_probed_and_not_often() {
        let closed = Closed {
            learned_at: at(0),
            until: at(16 * 3600),
            why: "session limit".to_owned(),
            in_words: true,
        };
        assert!(!closed.probe_is_due(None, at(3_599)));
        assert!(closed.probe_is_due(None, at(3_600)));
        assert!(!closed.probe_is_due(Some(at(3_600)), at(7_000)));
        assert!(closed.probe_is_due(Some(at(3_600)), at(7_200)));
        assert!(!closed.probe_is_due(None, at(16 * 3600)), "it is open by then");
        assert!(!Closed { in_words: false, ..closed.clone() }.probe_is_due(None, at(7_200)));
        // A sentence is believed for as long as a caller waits, a header to its end.
        let left = |closed: Closed| closed.bounded(Duration::from_secs(60)).left(at(0));
        assert_eq!(left(closed.clone()), Duration::from_secs(60));
        assert_eq!(left(Closed { in_words: false, ..closed.clone() }), closed.left(at(0)));
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
