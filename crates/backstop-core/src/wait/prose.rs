//! Waits in sentences: `Please try again in 11.054s`, `resets 4:20pm (Europe/Berlin)`.
//!
//! A cue says that a wait follows; what follows must then be a span or a point in time. What a
//! program says of its own waits (`retrying in 5s`) and warnings before a limit is reached
//! (`You've used 92% of your weekly limit`) are none.

use super::clock::Clock;
use super::scanner::Scanner;
use super::{moment, span, until};
use std::time::Duration;

/// How much of a text is read.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Words of which one must stand near `reset`, `until` and the like: passwords and databases are
/// reset, too.
const LIMIT_WORDS: &[&str] = &[
    "limit",
    "quota",
    "usage",
    "throttl",
    "capacity",
    "allowance",
    "credits",
    "too many",
    "blocked",
    "locked",
    "free tier",
    "requests",
    "exhausted",
];

/// What may follow a cue.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Follows {
    /// Only after a preposition: `in`, `after`, `at`, `on`.
    Preposition,
    /// A point in time at once, or a preposition.
    Anything,
    /// A point in time.
    Moment,
    /// What a header of this name holds.
    Header,
}

/// The cues, the most direct ones first.
const CUES: &[(&str, Follows, bool)] = &[
    ("retry-after", Follows::Header, false),
    ("again", Follows::Preposition, false),
    ("retry", Follows::Preposition, false),
    ("available", Follows::Preposition, false),
    ("allowed", Follows::Preposition, false),
    ("resets", Follows::Anything, true),
    ("reset", Follows::Preposition, true),
    ("refreshes", Follows::Preposition, true),
    ("renews", Follows::Preposition, true),
    ("limit reached|", Follows::Moment, false),
    ("until", Follows::Moment, true),
    ("ends on", Follows::Moment, true),
];

/// The time that follows a bar, as a program writes it for programs: `limit reached|1760000000`.
pub(super) fn marked(text: &str, clock: &Clock) -> Option<Duration> {
    let rest = text.split_once("limit reached|")?.1;
    rest.starts_with(|c: char| c.is_ascii_digit()).then(|| after_cue(rest, Follows::Moment, clock)).flatten()
}

/// Whether a text speaks of a limit.
pub(super) fn speaks_of_a_limit(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    LIMIT_WORDS.iter().any(|word| lower.contains(word))
}

/// The wait that a text asks for. `near_limit` says that what stands around it speaks of a limit.
pub(super) fn read(text: &str, near_limit: bool, clock: &Clock) -> Option<Duration> {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let lower = text.to_ascii_lowercase();
    if is_no_refusal(&lower) {
        return None;
    }
    let near_limit = near_limit || speaks_of_a_limit(&lower);
    waiting(&lower, near_limit).or_else(|| {
        CUES.iter().filter(|(.., needs_limit)| near_limit || !needs_limit).find_map(|(cue, follows, _)| {
            places(&lower, cue)
                .filter(|at| *cue != "retry" || !is_own_wait(&lower[..*at]))
                .find_map(|at| after_cue(&text[at + cue.len()..], *follows, clock))
        })
    })
}

/// Warnings before a limit is reached, and tests and documents that speak of waits.
fn is_no_refusal(lower: &str) -> bool {
    let used_percent = lower.find("used ").is_some_and(|at| {
        let mut scan = Scanner::new(&lower[at + "used ".len()..]);
        scan.number().is_some_and(|percent| percent < 100.0) && {
            scan.spaces();
            scan.eat('%')
        }
    });
    let left_percent = ["% left", "% remaining", "% of your"].iter().any(|words| lower.contains(words));
    used_percent
        || (left_percent && ["left", "remaining"].iter().any(|word| lower.contains(word)))
        || ["approaching", "close to your", "assert"].iter().any(|words| lower.contains(words))
}

/// Whether the word before `retry` makes it the program's own wait: `will retry in 4s`.
fn is_own_wait(before: &str) -> bool {
    let word = before.split_whitespace().next_back();
    word.is_some_and(|word| matches!(word, "will" | "i'll" | "we'll" | "then" | "auto" | "automatically"))
}

/// Where a cue stands, as a word of its own.
fn places<'t>(lower: &'t str, cue: &'t str) -> impl Iterator<Item = usize> + 't {
    lower.match_indices(cue).map(|(at, _)| at).filter(move |at| {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let is_start = lower[..*at].chars().next_back().is_none_or(|c| !is_word(c));
        let is_end = lower[at + cue.len()..].chars().next().is_none_or(|c| !is_word(c));
        is_start && (is_end || !cue.ends_with(|c: char| c.is_alphanumeric()))
    })
}

fn after_cue(rest: &str, follows: Follows, clock: &Clock) -> Option<Duration> {
    let mut scan = Scanner::new(rest);
    let moment = |scan: &mut Scanner<'_>| moment::read(scan, clock).and_then(|at| until(at, clock));
    if follows == Follows::Moment {
        return moment(&mut scan);
    }
    scan.spaces();
    let has_colon = scan.eat(':');
    if follows == Follows::Header {
        scan.eat('=');
        return span::read(&mut scan).or_else(|| moment(&mut scan)).or_else(|| bare_seconds(&mut scan));
    }
    if scan.word(&["in", "within"]) {
        return span::read(&mut scan);
    }
    if scan.word(&["after"]) {
        scan.spaces();
        scan.eat(':');
        return span::read(&mut scan).or_else(|| moment(&mut scan)).or_else(|| bare_seconds(&mut scan));
    }
    if scan.word(&["at", "on", "by"]) {
        return moment(&mut scan);
    }
    (has_colon || follows == Follows::Anything).then(|| moment(&mut scan)).flatten()
}

/// `retry after: 15`: a number that nothing follows but an end.
fn bare_seconds(scan: &mut Scanner<'_>) -> Option<Duration> {
    scan.spaces();
    let seconds = scan.number()?;
    let ends =
        scan.rest().chars().next().is_none_or(|c| matches!(c, '.' | ',' | ';' | ')' | ']' | '"' | '\''));
    ends.then(|| super::bounded(seconds)).flatten()
}

/// `please wait 41s`, `wait 90 seconds before retrying`, `a wait of 86 seconds is required`, and
/// beside words about a limit `wait 3 seconds`. Waits for other things are none.
fn waiting(lower: &str, near_limit: bool) -> Option<Duration> {
    places(lower, "wait").find_map(|at| {
        let before = lower[..at].trim_end();
        let mut scan = Scanner::new(&lower[at + "wait".len()..]);
        scan.word(&["of"]);
        let wait = span::read(&mut scan)?;
        let asked = ["please", "must", "need to", "have to", " a"].iter().any(|word| before.ends_with(word))
            || before == "a";
        let after = scan.rest().trim_start();
        let then = ["before", "and try", "and retry", "then try", "then retry", "to retry", "is required"];
        let is_own = ["will", "i'll", "we'll", "to"].iter().any(|word| before.ends_with(word));
        (asked || then.iter().any(|words| after.starts_with(words)) || (near_limit && !is_own))
            .then_some(wait)
    })
}
