//! When: times of day with and without a zone, dates, epochs, as servers and agents write them.
//!
//! A time of day that has passed by less than ten minutes means now, else it is the next day's. A
//! date without a year that has passed lies in this year if that was within half a year, else in
//! the next.

use super::clock::{Clock, Zone};
use super::scanner::Scanner;
use crate::Timestamp;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time, Weekday};
use std::time::Duration;

/// A time of day that passed by less than this is meant as now: clocks differ, and reading takes
/// time.
const PASSED_MEANS_NOW: Duration = Duration::from_secs(10 * 60);
/// A date without a year that passed by less than this has passed; by more, it is next year's.
const HALF_YEAR: Duration = Duration::from_secs(183 * 24 * 3600);
/// Epoch numbers are this long: seconds, and milliseconds.
const EPOCH_DIGITS: [usize; 2] = [10, 13];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Day {
    /// The next one on which the time lies ahead.
    Next,
    Tomorrow,
    On(Weekday),
    Yearless {
        month: i8,
        day: i8,
    },
    Full(Date),
}

/// Reads a point in time at the start of the text.
pub(super) fn read(scan: &mut Scanner<'_>, clock: &Clock) -> Option<Timestamp> {
    let mut ahead = *scan;
    ahead.spaces();
    let found = epoch(&mut ahead).or_else(|| dated(&mut ahead, clock))?;
    *scan = ahead;
    Some(found)
}

fn epoch(scan: &mut Scanner<'_>) -> Option<Timestamp> {
    let mut ahead = *scan;
    let digits = ahead.digits().filter(|digits| EPOCH_DIGITS.contains(&digits.len()))?;
    let value: i64 = digits.parse().ok()?;
    *scan = ahead;
    Some(Timestamp::from_millis(if digits.len() == EPOCH_DIGITS[0] { value * 1000 } else { value }))
}

fn dated(scan: &mut Scanner<'_>, clock: &Clock) -> Option<Timestamp> {
    let day = day(scan).unwrap_or(Day::Next);
    let mut ahead = *scan;
    ahead.eat(',');
    if !ahead.eat('T') {
        ahead.word(&["at"]);
    }
    ahead.spaces();
    let time = time(&mut ahead);
    if time.is_some() {
        *scan = ahead;
    } else if !matches!(day, Day::Full(_) | Day::Yearless { .. }) {
        return None;
    }
    // A time in a zone that nobody knows could be any time of the day.
    if names_unknown_zone(scan) {
        return None;
    }
    let zone = zone(scan).unwrap_or_else(|| clock.zone.clone());
    resolve(day, time.unwrap_or_default(), &zone, clock.now?)
}

fn day(scan: &mut Scanner<'_>) -> Option<Day> {
    let start = *scan;
    let readers: [fn(&mut Scanner<'_>) -> Option<Day>; 5] =
        [numeric_date, http_date, month_date, relative_day, slashed_date];
    for read in readers {
        *scan = start;
        if let Some(day) = read(scan) {
            return Some(day);
        }
    }
    *scan = start;
    None
}

/// `2026-11-16`, `11-16`.
fn numeric_date(scan: &mut Scanner<'_>) -> Option<Day> {
    let first = scan.digits().filter(|digits| digits.len() <= 4)?;
    let second = scan.eat('-').then(|| scan.integer(2)).flatten()?;
    if first.len() == 4 {
        let third = scan.eat('-').then(|| scan.integer(2)).flatten()?;
        return full(first.parse().ok()?, second, third);
    }
    yearless(first.parse().ok()?, second)
}

/// `11/29/2026`, as Americans write it.
fn slashed_date(scan: &mut Scanner<'_>) -> Option<Day> {
    let month = scan.integer(2)?;
    let day = scan.eat('/').then(|| scan.integer(2)).flatten()?;
    let year = scan.eat('/').then(|| scan.integer(4)).flatten().filter(|year| *year >= 2000)?;
    full(year, month, day)
}

/// `Mon, 16 Nov 2026`, `16 Nov 2026`.
fn http_date(scan: &mut Scanner<'_>) -> Option<Day> {
    let mut ahead = *scan;
    if ahead.letters().and_then(weekday).is_some() {
        ahead.eat(',');
        *scan = ahead;
    }
    scan.spaces();
    let day = scan.integer(2)?;
    scan.spaces();
    let month = month(scan.letters()?)?;
    scan.spaces();
    let year = scan.integer(4).filter(|year| *year >= 2000)?;
    full(year, month, day)
}

/// `Nov 20`, `November 20th, 2026`.
fn month_date(scan: &mut Scanner<'_>) -> Option<Day> {
    let month = month(scan.letters()?)?;
    scan.eat('.');
    scan.spaces();
    let day = scan.integer(2)?;
    let mut ordinal = *scan;
    if ordinal.letters().is_some_and(|word| matches!(word, "st" | "nd" | "rd" | "th")) {
        *scan = ordinal;
    }
    let mut ahead = *scan;
    ahead.eat(',');
    ahead.spaces();
    match ahead.integer(4).filter(|year| *year >= 2000 && ahead.peek() != Some(':')) {
        Some(year) => {
            *scan = ahead;
            full(year, month, day)
        }
        None => yearless(month, day),
    }
}

/// `Mon`, `tomorrow`, `today`.
fn relative_day(scan: &mut Scanner<'_>) -> Option<Day> {
    let word = scan.letters()?;
    match word.to_ascii_lowercase().as_str() {
        "tomorrow" => Some(Day::Tomorrow),
        "today" => Some(Day::Next),
        _ => weekday(word).map(Day::On),
    }
}

fn full(year: i64, month: i64, day: i64) -> Option<Day> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    Some(Day::Full(date))
}

fn yearless(month: i64, day: i64) -> Option<Day> {
    let (month, day) = (month.try_into().ok()?, day.try_into().ok()?);
    // A leap year has every day.
    Date::new(2028, month, day).ok().map(|_| Day::Yearless { month, day })
}

/// `3pm`, `4:20pm`, `15:04:05`, `5:04 PM`, `midnight`. A bare number is no time.
fn time(scan: &mut Scanner<'_>) -> Option<Time> {
    for (word, hour) in [("midnight", 0), ("noon", 12)] {
        if scan.word(&[word]) {
            return Time::new(hour, 0, 0, 0).ok();
        }
    }
    let mut hour = scan.integer(2)?;
    let mut minute = 0;
    let mut second = 0;
    let has_minutes = scan.eat(':');
    if has_minutes {
        minute = scan.integer(2)?;
        if scan.eat(':') {
            second = scan.number()? as i64;
        }
    }
    let mut ahead = *scan;
    ahead.spaces();
    let half = ahead.letters().map(str::to_ascii_lowercase);
    match half.as_deref() {
        Some(half @ ("am" | "pm")) if (1..=12).contains(&hour) => {
            hour = hour % 12 + if half == "pm" { 12 } else { 0 };
            *scan = ahead;
        }
        _ if !has_minutes => return None,
        _ => {}
    }
    Time::new(hour.try_into().ok()?, minute.try_into().ok()?, second.try_into().ok()?, 0).ok()
}

/// Whether a zone follows that does not exist: `(Mars/Olympus)`.
fn names_unknown_zone(scan: &Scanner<'_>) -> bool {
    let mut ahead = *scan;
    ahead.spaces();
    if !ahead.eat('(') {
        return false;
    }
    let name = ahead.rest().split(')').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    name.contains('/') && name.chars().all(is_name) && Zone::named(name).is_none()
}

/// `(Europe/Berlin)`, `UTC`, `GMT-3`, `Z`, `+02:00`, `+0000 UTC`, `Pacific time`.
fn zone(scan: &mut Scanner<'_>) -> Option<Zone> {
    let mut ahead = *scan;
    ahead.spaces();
    if ahead.eat('(') {
        let (name, _) = ahead.rest().split_once(')')?;
        return Zone::named(name);
    }
    if let Some(sign @ ('+' | '-')) = ahead.peek() {
        ahead.eat(sign);
        let digits = ahead.digits().filter(|digits| matches!(digits.len(), 2 | 4))?;
        let hours: i32 = digits[..2].parse().ok()?;
        let minutes: i32 = match digits.get(2..4) {
            Some(minutes) => minutes.parse().ok()?,
            None if ahead.eat(':') => i32::try_from(ahead.integer(2)?).ok()?,
            None => 0,
        };
        let seconds = hours * 3600 + minutes * 60;
        return Zone::offset(if sign == '-' { -seconds } else { seconds });
    }
    let from = ahead.rest();
    let word = ahead.letters()?;
    if ahead.word(&["time"]) {
        let full = match word.to_ascii_lowercase().as_str() {
            "pacific" => "America/Los_Angeles",
            "mountain" => "America/Denver",
            "central" => "America/Chicago",
            "eastern" => "America/New_York",
            _ => return Zone::named(word),
        };
        return Zone::named(full);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+' | ':');
    let name = from.split(|c: char| !is_name(c)).next().unwrap_or(word).trim_end_matches([':', '-']);
    Zone::named(name).or_else(|| Zone::named(word))
}

fn resolve(day: Day, time: Time, zone: &Zone, now: Timestamp) -> Option<Timestamp> {
    let tz = zone.inner();
    let here = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?.to_zoned(tz.clone());
    let today = here.date();
    let at = |date: Date| -> Option<Timestamp> {
        let zoned = DateTime::from_parts(date, time).to_zoned(tz.clone()).ok()?;
        Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
    };
    let ahead_or = |found: Timestamp, later: i64| -> Option<Timestamp> {
        if now.since(found) < PASSED_MEANS_NOW {
            return Some(found);
        }
        let zoned = jiff::Timestamp::from_millisecond(found.as_millis()).ok()?.to_zoned(tz.clone());
        at(zoned.date().checked_add(later.days()).ok()?)
    };
    match day {
        Day::Full(date) => at(date),
        Day::Tomorrow => at(today.tomorrow().ok()?),
        Day::Next => ahead_or(at(today)?, 1),
        Day::On(weekday) => {
            let days = weekday.since(today.weekday());
            ahead_or(at(today.checked_add(i64::from(days).days()).ok()?)?, 7)
        }
        Day::Yearless { month, day } => {
            let in_year = |year: i16| Date::new(year, month, day).ok().and_then(at);
            let this = in_year(today.year());
            match this {
                Some(found) if now.since(found) < HALF_YEAR => Some(found),
                _ => in_year(today.year() + 1),
            }
        }
    }
}

fn month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_ascii_lowercase();
    let index = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(&word))?;
    i64::try_from(index + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let word = word.to_ascii_lowercase();
    let index = DAYS.iter().position(|day| word.len() >= 3 && day.starts_with(&word))?;
    Weekday::from_monday_zero_offset(i8::try_from(index).ok()?).ok()
}
