//! A wait for a rate limit: whose limit it is, when it ends, and how long that is.

use super::{NAME_CHARS_MAX, shown};
use crate::notice::json_text;
use crate::{Style, duration, json, near_time};
use backstop_core::{LimitWindow, SafeText, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// A wait for a rate limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWaitRow {
    /// Whose limit it is, where that is known.
    pub provider: Option<SafeText>,
    /// The model that the limit is of, where it is that of one model.
    pub model: Option<SafeText>,
    /// The window of time that the limit counts in, where that is known.
    pub window: Option<LimitWindow>,
    /// The end of the limit, as it was stated.
    pub resets_at: Option<Timestamp>,
    /// When the work goes on: a little later.
    pub until: Timestamp,
    /// How long that is.
    pub left: Duration,
}

impl LimitWaitRow {
    /// `waiting for anthropic: session limit, resets 01:00 CET (2h 20m)`.
    pub(super) fn words(&self, style: Style) -> String {
        let now = Timestamp::from_millis(
            self.until.as_millis().saturating_sub(i64::try_from(self.left.as_millis()).unwrap_or(i64::MAX)),
        );
        let name = |text: &SafeText| shown(text, NAME_CHARS_MAX, style);
        let model = self.model.as_ref().map(|model| format!(" ({})", name(model))).unwrap_or_default();
        let whom = self.provider.as_ref().map(|provider| format!(" for {}{model}", name(provider)));
        let what = self.window.map_or("rate limit", LimitWindow::words);
        let until = match self.resets_at.filter(|at| *at > now) {
            Some(at) => format!("resets {}", near_time(at, now)),
            None if self.resets_at.is_some() => format!("tried again {}", near_time(self.until, now)),
            None => format!("no end is known, tried again {}", near_time(self.until, now)),
        };
        format!("waiting{}: {what}, {until} ({})", whom.unwrap_or_default(), duration(self.left))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "provider": self.provider.as_ref().map(json_text),
            "model": self.model.as_ref().map(json_text),
            "window": self.window,
            "resets_at": self.resets_at,
            "until": self.until,
            "wait_ms": json::ms(self.left),
        })
    }
}

/// How often a run waited for rate limits, and how long in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// How often.
    pub times: u32,
    /// How long in all.
    pub waited: Duration,
}

impl WaitSum {
    /// `2 waits, 2h 55m`; nothing where there was none.
    pub(super) fn words(self) -> Option<String> {
        let waits = crate::list::count(u64::from(self.times), "wait", "waits");
        (self.times > 0).then(|| format!("{waits}, {}", duration(self.waited)))
    }

    pub(super) fn json(self) -> Value {
        json!({ "times": self.times, "waited_ms": json::ms(self.waited) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_whose_limit_it_is_and_when_it_ends() {
        let now = Timestamp::parse_rfc3339("2026-11-17T22:40:00Z").unwrap();
        let after = |minutes: u64| now.after(Duration::from_secs(60 * minutes));
        let mut wait = LimitWaitRow {
            provider: Some("anthropic".into()),
            model: None,
            window: Some(LimitWindow::FiveHour),
            resets_at: Some(after(140)),
            until: after(141),
            left: Duration::from_secs(141 * 60),
        };
        let words = |wait: &LimitWaitRow| wait.words(Style::PLAIN);
        assert_eq!(
            words(&wait),
            "waiting for anthropic: session limit, resets 2026-11-18 01:00 UTC (2h 21m)"
        );
        wait = LimitWaitRow { model: Some("opus".into()), window: Some(LimitWindow::Week), ..wait };
        assert_eq!(
            words(&wait),
            "waiting for anthropic (opus): weekly limit, resets 2026-11-18 01:00 UTC (2h 21m)"
        );
        wait = LimitWaitRow { resets_at: None, window: None, provider: None, ..wait };
        wait = LimitWaitRow { until: after(1), left: Duration::from_secs(60), ..wait };
        assert_eq!(words(&wait), "waiting: rate limit, no end is known, tried again 22:41 UTC (1m 00s)");
        assert_eq!(
            WaitSum { times: 2, waited: Duration::from_secs(10_500) }.words().unwrap(),
            "2 waits, 2h 55m"
        );
        assert_eq!(WaitSum::default().words(), None);
    }
}
