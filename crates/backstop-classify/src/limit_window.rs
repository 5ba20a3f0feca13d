//! The window that a limit counts in: what the decisive lines name, else what their wording and the
//! time until the reset suggest.
//!
//! | what is said | window |
//! |---|---|
//! | a name: `weekly`, `5-hour`, `RPM` | that one |
//! | what is free is used up | a day |
//! | a subscription's limit that ends within five hours, or at a time of day | five hours |
//! | a subscription's limit that ends later | a day or a week; a month beyond that |
//! | a subscription's limit, and no end | five hours where the provider's first window is that, else unknown |
//! | any other limit that ends within two minutes, or a burst | a minute |
//!
//! Where a limit is neither a subscription's nor a burst, nothing is guessed: those of registries
//! and hosting services have windows of their own.

use backstop_core::LimitWindow;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Up to this wait, a limit is one per minute: twice a minute, since some count in steps.
const BURST_MAX: Duration = Duration::from_secs(120);
/// The session of a subscription, and how imprecisely its end is written.
const SESSION_MAX: Duration = Duration::from_secs(5 * 3600 + 60);
/// The longest wait of a weekly limit, with the same allowance of a day.
const WEEK_MAX: Duration = Duration::from_secs(8 * 24 * 3600);

/// Words for a subscription's own limit, in lower case.
const SUBSCRIPTION: &[&str] = &[
    "usage limit",
    "usage_limit",
    "usage quota",
    "extra usage",
    "hit your limit",
    "reached your limit",
    "your quota",
    "your capacity",
    "account's rate limit",
    "model requests",
];
/// Words that say that it is not the subscription's limit.
const NOT_SUBSCRIPTION: &[&str] = &["not your usage limit"];
/// Words for what costs nothing, which providers give for a day.
const FREE: &[&str] = &["free usage", "freeusage", "free tier", "free model limit"];
/// Words for a limit that is over in a moment.
const BURST: &[&str] = &[
    "a moment",
    "shortly",
    "temporar",
    "under a minute",
    "retrying",
    "too many requests",
    "resource exhausted",
];
/// What comes before the time of a reset.
const BEFORE_TIME: &[&str] = &["reset", "again", "until"];
/// Providers whose subscriptions count in windows of five hours and of a week, and in no others.
const FIVE_HOURS_AND_WEEK: &[&str] = &["anthropic", "openai"];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// What is known of a limit.
pub(crate) struct Limit<'t> {
    /// The lines that say so, the decisive one first.
    pub(crate) lines: Vec<&'t str>,
    /// How long until its end.
    pub(crate) wait: Option<Duration>,
    /// Whose limit it is.
    pub(crate) provider: Option<&'t str>,
}

impl Limit<'_> {
    /// The window, where it is named or can be told.
    pub(crate) fn window(&self) -> Option<LimitWindow> {
        self.lines.iter().find_map(|line| LimitWindow::in_text(line)).or_else(|| self.inferred())
    }

    fn inferred(&self) -> Option<LimitWindow> {
        let text = self.lines.join("\n").to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(FREE) {
            return Some(LimitWindow::Day);
        }
        if says(SUBSCRIPTION) && !says(NOT_SUBSCRIPTION) {
            return self.of_subscription(&text);
        }
        let is_short = self.wait.is_none_or(|wait| wait <= BURST_MAX);
        let is_burst =
            self.wait.is_some() || says(BURST) || (self.provider.is_some() && text.contains("429"));
        (is_short && is_burst).then_some(LimitWindow::Minute)
    }

    fn of_subscription(&self, text: &str) -> Option<LimitWindow> {
        let has_two = self.provider.is_some_and(|provider| FIVE_HOURS_AND_WEEK.contains(&provider));
        let time = BEFORE_TIME.iter().filter_map(|word| text.find(word)).min().map_or("", |at| &text[at..]);
        let Some(wait) = self.wait else {
            return match text.contains("more than 24 hours") {
                true => Some(LimitWindow::Week),
                false => has_two.then_some(LimitWindow::FiveHour),
            };
        };
        Some(match wait {
            _ if wait <= SESSION_MAX || (has_clock(time) && !has_date(time)) => LimitWindow::FiveHour,
            _ if wait > WEEK_MAX => LimitWindow::Month,
            _ if wait < 24 * HOUR && !has_two => LimitWindow::Day,
            _ => LimitWindow::Week,
        })
    }
}

/// The words and numbers of a text.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn begins_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a text in lower case has a date: `nov 20`, `20 november`, `2026-11-20`.
fn has_date(text: &str) -> bool {
    let is_month = |word: &str| word.get(..3).is_some_and(|begin| MONTHS.contains(&begin));
    words(text).windows(2).any(|pair| {
        (is_month(pair[0]) && begins_with_digit(pair[1]))
            || (begins_with_digit(pair[0]) && is_month(pair[1]))
            || (pair[0].len() == 4 && pair[0].starts_with("20") && begins_with_digit(pair[1]))
    })
}

/// Whether a text in lower case has a time of day: `11pm`, `5:40 pm`, `17:40`.
fn has_clock(text: &str) -> bool {
    let is_half = |word: &str| word.strip_suffix('m').is_some_and(|rest| rest.ends_with(['a', 'p']));
    let words = words(text);
    words.windows(2).any(|pair| begins_with_digit(pair[0]) && matches!(pair[1], "am" | "pm"))
        || words.iter().any(|word| begins_with_digit(word) && is_half(word))
        || text.as_bytes().windows(4).any(|part| {
            part[0].is_ascii_digit()
                && part[1] == b':'
                && part[2].is_ascii_digit()
                && part[3].is_ascii_digit()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use LimitWindow::{Day, FiveHour, Minute, Month, Week};

    #[test]
    fn a_window_that_nobody_names_is_told_by_the_wording_and_the_end() {
        let (minute, hour, day) = (60, 3600, 24 * 3600);
        for (text, wait, provider, want) in [
            ("You've hit your limit · resets 11pm (Asia/Tokyo)", Some(9 * hour), "anthropic", Some(FiveHour)),
            ("usage limit · resets Jan 2, 2027, 8am (UTC)", Some(day), "anthropic", Some(Week)),
            ("usage limit … try again at 4:10 PM.", Some(4 * hour), "openai", Some(FiveHour)),
            // Shortly before midnight, the end of a session has a date too.
            ("usage limit … try again at Nov 19th, 2026 1:10 AM.", Some(2 * hour), "openai", Some(FiveHour)),
            ("usage limit … try again at Nov 23rd, 2026 9:01 PM.", Some(5 * day), "openai", Some(Week)),
            ("{\"type\":\"usage_limit_reached\"}", Some(14 * hour), "openai", Some(Week)),
            ("You’ve hit your usage limit. Try again later.", None, "openai", Some(FiveHour)),
            ("Usage limit reached. Try again later.", None, "", None),
            ("Your quota will reset after 19h14m47s.", Some(19 * hour), "google", Some(Day)),
            ("Usage limit reached, resets in 20 days", Some(20 * day), "", Some(Month)),
            ("Your weekly limit resets at 3pm", Some(hour), "anthropic", Some(Week)),
            ("Free usage exceeded", None, "", Some(Day)),
            ("429 Too Many Requests", None, "openai", Some(Minute)),
            ("Rate limit exceeded. Try again shortly.", None, "", Some(Minute)),
            ("Server is limiting requests (not your usage limit), temporarily", None, "", Some(Minute)),
            ("rate limited, retry in 30 s", Some(30), "", Some(Minute)),
            ("wait for your limit to reset in under a minute", Some(60), "copilot", Some(Minute)),
            ("Pay-as-you-go resource exhausted", None, "", Some(Minute)),
            // Limits of other services have other windows.
            ("API rate limit exceeded for user ID 1", Some(40 * minute), "github", None),
            ("You have reached your pull rate limit", None, "docker", None),
        ] {
            let provider = Some(provider).filter(|name| !name.is_empty());
            let limit = Limit { lines: vec![text], wait: wait.map(Duration::from_secs), provider };
            assert_eq!(limit.window(), want, "{text}");
        }
    }
}
