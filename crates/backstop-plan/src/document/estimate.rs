//! Reads an estimate such as `2-3h` as a duration.

use super::inline::{plain, without_remarks};
use backstop_core::duration;
use std::time::Duration;

/// The longest estimate that is read, in bytes.
const ESTIMATE_BYTES_MAX: usize = 64;

/// Reads `2h`, `30 min`, `~1.5 hours`, `1h 30m`, `1-2 days` (the upper end), `1 week`. Story points
/// are not a duration.
pub(crate) fn duration(cell: &str) -> Option<Duration> {
    if cell.len() > ESTIMATE_BYTES_MAX {
        return None;
    }
    let text = without_remarks(&plain(cell)).0.to_lowercase();
    let text = text.trim_start_matches(|c: char| !c.is_ascii_digit()).replace([',', '+'], "");
    let upper = text.rsplit(['-', '–', '—']).next()?;
    let upper = upper.rsplit(" to ").next()?.trim();
    let mut total = Duration::ZERO;
    let mut rest = upper;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, times) = match &after[..letters] {
            "hr" | "hrs" => ("h", 1),
            "mins" => ("m", 1),
            "secs" => ("s", 1),
            "w" | "week" | "weeks" | "wk" | "wks" => ("d", 7),
            unit => (unit, 1),
        };
        let part = duration::parse(&format!("{number}{unit}")).ok()?;
        total = total.checked_add(part.checked_mul(times)?)?;
        rest = after[letters..].trim_start();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let minutes = |cell: &str| duration(cell).map(|d| d.as_secs() / 60);
        for (cell, want) in [
            ("2h", Some(120)),
            ("30 min", Some(30)),
            ("45 mins", Some(45)),
            ("~1.5 hours", Some(90)),
            ("1h 30m", Some(90)),
            ("1-2 days", Some(2 * 24 * 60)),
            ("2–4 hrs", Some(240)),
            ("1 to 2 h", Some(120)),
            ("1h - 2h", Some(120)),
            ("1 week", Some(7 * 24 * 60)),
            ("**2h** (at most)", Some(120)),
            ("< 1 hour", Some(60)),
            ("3 points", None),
            ("5", None),
            ("M", None),
            ("", None),
            ("-", None),
            ("9999999999999 weeks", None),
            ("1.2.3 h", None),
        ] {
            assert_eq!(minutes(cell), want, "{cell}");
        }
    }
}
