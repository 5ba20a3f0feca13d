//! How many requests a provider still takes in the current window, as its answers say.
//!
//! A provider that names its limit with each answer is not asked for more than that: a request
//! takes one of what is left before it is sent, and waits for the next window where nothing is
//! left. The first request of an account goes alone for a moment, because nothing is known before
//! its answer. This is known to one process; what closes a guard is known to all.

use backstop_core::guard::GuardKey;
use backstop_core::{Hints, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long others wait for the answer to the first request of an account.
const FIRST_ALONE_MAX: Duration = Duration::from_secs(1);
/// How many accounts and models are known at once; the oldest are forgotten.
const KEYS_MAX: usize = 1000;
/// A window that resets later than this is a quota, whose end the guard knows.
const WINDOW_MAX: Duration = Duration::from_secs(120);
/// The name of the window that counts requests.
const REQUESTS: &str = "requests";

/// What is known of the windows of accounts.
#[derive(Debug, Default)]
pub(super) struct Windows {
    known: Mutex<HashMap<GuardKey, Known>>,
    changed: Notify,
}

#[derive(Debug)]
enum Known {
    /// Somebody asks for the first time, since then.
    Asking(Timestamp),
    /// The provider names no limit.
    Unlimited,
    Window(Window),
}

#[derive(Debug, Clone, Copy)]
struct Window {
    limit: u64,
    left: u64,
    resets_at: Timestamp,
    length: Duration,
}

/// What a request does next.
enum Step {
    Go,
    Wait(Duration),
}

impl Windows {
    /// Takes one of the requests that are left. Gives how long the next window has to be waited
    /// for, where that is longer than `limit`.
    pub(super) async fn take(
        self: &Arc<Self>,
        key: &GuardKey,
        limit: Duration,
        now: impl Fn() -> Timestamp,
    ) -> Result<(), Duration> {
        let began = now();
        loop {
            // Heard from now on, so that nothing is missed between looking and waiting.
            let changed = self.changed.notified();
            let wait = match self.step(key, now()) {
                Step::Go => return Ok(()),
                Step::Wait(wait) => wait,
            };
            let waited = now().since(began);
            if waited + wait > limit {
                return Err(wait);
            }
            let _ = tokio::time::timeout(wait, changed).await;
        }
    }

    fn step(&self, key: &GuardKey, now: Timestamp) -> Step {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEYS_MAX && !known.contains_key(key) {
            known.clear();
        }
        match known.get_mut(key) {
            None => {
                known.insert(key.clone(), Known::Asking(now));
                Step::Go
            }
            Some(Known::Unlimited) => Step::Go,
            Some(Known::Asking(since)) => match FIRST_ALONE_MAX.checked_sub(now.since(*since)) {
                Some(left) if !left.is_zero() => Step::Wait(left),
                _ => Step::Go,
            },
            Some(Known::Window(window)) => {
                if window.resets_at <= now {
                    window.left = window.limit;
                    window.resets_at = now.after(window.length);
                }
                if window.left == 0 {
                    return Step::Wait(window.resets_at.since(now).max(Duration::from_millis(1)));
                }
                window.left -= 1;
                Step::Go
            }
        }
    }

    /// Learns from an answer, or that there was none.
    pub(super) fn learn(&self, key: &GuardKey, hints: Option<&Hints>, now: Timestamp) {
        let window = hints.and_then(|hints| requests_window(hints, now));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = match (known.get(key), window) {
            // Requests under way are counted here and not there yet: the smaller number is true.
            (Some(Known::Window(was)), Some(is)) => {
                let same =
                    is.resets_at.since(was.resets_at).max(was.resets_at.since(is.resets_at)) < was.length / 2;
                let left = if same { was.left.min(is.left) } else { is.left };
                Known::Window(Window { left, length: was.length.max(is.length), ..is })
            }
            (Some(Known::Window(_)), None) => return,
            (_, Some(is)) => Known::Window(is),
            (_, None) => Known::Unlimited,
        };
        known.insert(key.clone(), learned);
        drop(known);
        self.changed.notify_waiters();
    }

    /// Whether something would be learned from an answer without a limit.
    pub(super) fn is_asking(&self, key: &GuardKey) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(known.get(key), Some(Known::Asking(_)))
    }
}

fn requests_window(hints: &Hints, now: Timestamp) -> Option<Window> {
    let window = hints.windows.iter().find(|window| window.name == REQUESTS)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Its range is looked at.
    let whole = |number: f64| (0.0..1e12).contains(&number).then_some(number as u64);
    let limit = window.limit.and_then(whole)?.max(1);
    let left = window.remaining.and_then(whole)?.min(limit);
    let length = window.resets_in?;
    if length.is_zero() || length > WINDOW_MAX {
        return None;
    }
    Some(Window { limit, left, resets_at: now.after(length), length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Clock;

    fn hints(limit: u32, left: u32, reset: &str, now: Timestamp) -> Hints {
        let header = |name: &str, value: String| (format!("x-ratelimit-{name}-requests"), value);
        let headers = [
            header("limit", limit.to_string()),
            header("remaining", left.to_string()),
            header("reset", reset.to_owned()),
        ];
        Hints::read(&headers, None, &Clock::utc(now))
    }

    #[tokio::test]
    async fn no_more_is_sent_than_a_window_takes() {
        let windows = Arc::new(Windows::default());
        let key = GuardKey::unknown_account("openai".parse().unwrap());
        let at = |seconds: u64| Timestamp::from_millis(1_700_000_000_000).after(Duration::from_secs(seconds));
        let take = async |now: Timestamp| windows.take(&key, Duration::ZERO, || now).await.is_ok();
        assert!(take(at(0)).await, "the first one goes");
        assert!(!take(at(0)).await, "alone");
        windows.learn(&key, Some(&hints(3, 2, "10s", at(0))), at(0));
        assert!(take(at(1)).await && take(at(1)).await);
        assert!(!take(at(2)).await, "the window is used up");
        // An answer that was under way does not give anything back.
        windows.learn(&key, Some(&hints(3, 1, "9s", at(1))), at(1));
        assert!(!take(at(2)).await);
        assert!(take(at(11)).await && take(at(11)).await && take(at(11)).await);
        assert!(!take(at(11)).await, "nor more in the next one");
        let other = GuardKey::unknown_account("groq".parse().unwrap());
        assert!(windows.take(&other, Duration::ZERO, || at(0)).await.is_ok());
        windows.learn(&other, Some(&Hints::default()), at(0));
        for _ in 0..100 {
            assert!(windows.take(&other, Duration::ZERO, || at(0)).await.is_ok(), "no limit is named");
        }
    }
}
