//! How long: `12ms`, `6m0s`, `1h 32m`, `4 days 20 hours 9 minutes`, `~100 min`, `under a minute`.

use super::scanner::Scanner;
use super::{WAIT_MAX, bounded};
use std::time::Duration;

/// How many parts a span has at most: days, hours, minutes, seconds, and some to spare.
const PARTS_MAX: usize = 8;
/// Words that may stand before a span.
const FILLERS: &[&str] = &[
    "about",
    "approximately",
    "approx",
    "around",
    "another",
    "under",
    "roughly",
    "than",
    "least",
    "to",
    "for",
    "up",
    "at",
    "less",
];

/// Reads a span that is all of the text.
pub(super) fn whole(text: &str) -> Option<Duration> {
    let mut scan = Scanner::new(text.trim());
    let span = read(&mut scan)?;
    scan.is_done().then_some(span)
}

/// Reads a span at the start of the text. A number without a unit is none.
pub(super) fn read(scan: &mut Scanner<'_>) -> Option<Duration> {
    let mut ahead = *scan;
    ahead.spaces();
    while ahead.eat('~') || ahead.eat('≈') || ahead.word(FILLERS) {
        ahead.spaces();
    }
    let seconds = clock_like(&mut ahead)
        .or_else(|| iso(&mut ahead))
        .or_else(|| one(&mut ahead))
        .or_else(|| parts(&mut ahead))?;
    *scan = ahead;
    bounded(seconds)
}

/// `00:04:30`.
fn clock_like(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut ahead = *scan;
    let hours = ahead.integer(3)?;
    let minutes = ahead.eat(':').then(|| ahead.integer(2)).flatten()?;
    let seconds = ahead.eat(':').then(|| ahead.number()).flatten()?;
    *scan = ahead;
    Some(hours as f64 * 3600.0 + minutes as f64 * 60.0 + seconds)
}

/// `PT30S`, `P1DT2H`, as ISO 8601 writes them.
fn iso(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut ahead = *scan;
    let mut total = None;
    let mut is_time = false;
    ahead.eat('P').then_some(())?;
    for _ in 0..PARTS_MAX {
        is_time |= ahead.eat('T');
        let Some(value) = ahead.number() else { break };
        let sign = ahead.peek()?;
        let seconds = match sign {
            'W' if !is_time => 604_800.0,
            'D' if !is_time => 86_400.0,
            'H' if is_time => 3_600.0,
            'M' if is_time => 60.0,
            'S' if is_time => 1.0,
            _ => return None,
        };
        ahead.eat(sign);
        total = Some(total.unwrap_or(0.0) + value * seconds);
    }
    let ends = ahead.peek().is_none_or(|c| !c.is_alphanumeric());
    *scan = if ends { ahead } else { *scan };
    total.filter(|_| ends)
}

/// `a minute`, `one hour`, `half an hour`.
fn one(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut ahead = *scan;
    let share = if ahead.word(&["half"]) { 0.5 } else { 1.0 };
    if !ahead.word(&["a", "an", "one"]) {
        return None;
    }
    ahead.spaces();
    let seconds = unit(ahead.letters()?)?;
    *scan = ahead;
    Some(seconds * share)
}

fn parts(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut total: Option<f64> = None;
    for _ in 0..PARTS_MAX {
        let mut ahead = *scan;
        if total.is_some() {
            ahead.spaces();
            ahead.eat(',');
            ahead.word(&["and"]);
        }
        ahead.spaces();
        let Some(seconds) = part(&mut ahead) else { break };
        total = Some(total.unwrap_or(0.0) + seconds);
        *scan = ahead;
        if total > Some(WAIT_MAX.as_secs_f64()) {
            break;
        }
    }
    total
}

/// A number and its unit. Of a range, `1-2 minutes`, the longer.
fn part(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut value = with_comma(scan).or_else(|| scan.number())?;
    let mut ahead = *scan;
    if ahead.eat('-') || ahead.eat('–') || ahead.word(&["to"]) {
        ahead.spaces();
        if let Some(longer) = ahead.number() {
            value = value.max(longer);
            *scan = ahead;
        }
    }
    scan.spaces();
    Some(value * unit(scan.letters()?)?)
}

/// `1,5`, a fraction; `1,200`, thousands.
fn with_comma(scan: &mut Scanner<'_>) -> Option<f64> {
    let mut ahead = *scan;
    let whole = ahead.digits()?;
    let rest = ahead.eat(',').then(|| ahead.digits()).flatten()?;
    let sign = if rest.len() == 3 { "" } else { "." };
    *scan = ahead;
    format!("{whole}{sign}{rest}").parse().ok()
}

/// The seconds of a unit.
fn unit(word: &str) -> Option<f64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "wk" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_programs_and_people_write_them() {
        for (text, want) in [
            ("12ms", 0.012),
            ("6m0s", 360.0),
            ("1h2m3.5s", 3723.5),
            ("872.14µs", 0.000_872_14),
            ("4 days 20 hours 9 minutes", 418_140.0),
            ("4 hours and 30 minutes", 16_200.0),
            ("1 day, 2 hours", 93_600.0),
            ("2hr 5min", 7_500.0),
            ("~100 min", 6_000.0),
            ("under a minute", 60.0),
            ("one hour", 3_600.0),
            ("1-2 minutes", 120.0),
            ("00:04:30", 270.0),
            ("half an hour", 1_800.0),
            ("PT30S", 30.0),
            ("P1DT2H30M", 95_400.0),
            ("1,5 s", 1.5),
            ("1,200 seconds", 1_200.0),
        ] {
            assert_eq!(whole(text).map(|d| d.as_secs_f64()), Some(want), "{text}");
        }
        for text in [
            "",
            "5",
            "a moment",
            "a few minutes",
            "3 pods",
            "1s2",
            "--5s",
            "soon",
            "PT",
            "P5M",
            "PTO",
            "PT30Sx",
            "half",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
