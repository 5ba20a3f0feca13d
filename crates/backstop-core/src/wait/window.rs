//! Which window of time a limit counts in, as providers and agents name it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The window of time that a limit counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitWindow {
    /// A minute: requests or tokens per minute.
    Minute,
    /// Five hours: a subscription's session.
    FiveHour,
    /// A day.
    Day,
    /// A week.
    Week,
    /// A month, or a billing cycle.
    Month,
}

/// The words for each window, in lower case.
const WORDS: &[(&str, LimitWindow)] = &[
    ("per minute", LimitWindow::Minute),
    ("per-minute", LimitWindow::Minute),
    ("per min", LimitWindow::Minute),
    ("per-min", LimitWindow::Minute),
    ("rpm", LimitWindow::Minute),
    ("tpm", LimitWindow::Minute),
    ("5-hour", LimitWindow::FiveHour),
    ("5 hour", LimitWindow::FiveHour),
    ("5h", LimitWindow::FiveHour),
    ("five-hour", LimitWindow::FiveHour),
    ("five hour", LimitWindow::FiveHour),
    ("five_hour", LimitWindow::FiveHour),
    ("session limit", LimitWindow::FiveHour),
    ("session rate limit", LimitWindow::FiveHour),
    ("daily", LimitWindow::Day),
    ("per day", LimitWindow::Day),
    ("per-day", LimitWindow::Day),
    ("today", LimitWindow::Day),
    ("today's", LimitWindow::Day),
    ("rpd", LimitWindow::Day),
    ("tpd", LimitWindow::Day),
    ("weekly", LimitWindow::Week),
    ("per week", LimitWindow::Week),
    ("this week", LimitWindow::Week),
    ("this week's", LimitWindow::Week),
    ("1-week", LimitWindow::Week),
    ("7-day", LimitWindow::Week),
    ("seven_day", LimitWindow::Week),
    ("seven_day_opus", LimitWindow::Week),
    ("seven_day_sonnet", LimitWindow::Week),
    ("monthly", LimitWindow::Month),
    ("per month", LimitWindow::Month),
    ("this month", LimitWindow::Month),
    ("billing cycle", LimitWindow::Month),
];

impl LimitWindow {
    /// How long the window is.
    pub fn length(self) -> Duration {
        const HOUR: u64 = 3600;
        Duration::from_secs(match self {
            LimitWindow::Minute => 60,
            LimitWindow::FiveHour => 5 * HOUR,
            LimitWindow::Day => 24 * HOUR,
            LimitWindow::Week => 7 * 24 * HOUR,
            LimitWindow::Month => 30 * 24 * HOUR,
        })
    }

    /// What the limit is called, such as `session limit`.
    pub fn words(self) -> &'static str {
        match self {
            LimitWindow::Minute => "limit per minute",
            LimitWindow::FiveHour => "session limit",
            LimitWindow::Day => "daily limit",
            LimitWindow::Week => "weekly limit",
            LimitWindow::Month => "monthly limit",
        }
    }

    /// The window that a text names first.
    pub fn in_text(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let place = |words: &str| {
            lower.match_indices(words).map(|(at, _)| at).find(|at| {
                let before = lower[..*at].chars().next_back();
                let after = lower[at + words.len()..].chars().next();
                !before.is_some_and(is_word) && !after.is_some_and(is_word)
            })
        };
        WORDS
            .iter()
            .filter_map(|(words, window)| Some((place(words)?, *window)))
            .min_by_key(|(at, _)| *at)
            .map(|(_, w)| w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_what_the_text_names_first() {
        for (text, want) in [
            ("You've hit your session limit · resets 3pm", Some(LimitWindow::FiveHour)),
            ("weekly usage limit reached. It will reset in 5 hours", Some(LimitWindow::Week)),
            ("Usage limit reached. It will reset in 5 hours", None),
            ("Usage limit reached for 5 hour.", Some(LimitWindow::FiveHour)),
            ("\"rateLimitType\":\"seven_day\"", Some(LimitWindow::Week)),
            ("on requests per day (RPD): Limit 200", Some(LimitWindow::Day)),
            ("HTTP 429 Too Many Requests", None),
            ("15 hour flight", None),
        ] {
            assert_eq!(LimitWindow::in_text(text), want, "{text}");
        }
    }
}
