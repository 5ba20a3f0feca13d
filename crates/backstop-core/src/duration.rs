//! How people write durations and sizes, and how we write them back.

use std::time::Duration;

/// The longest duration that may be asked for: a year.
const DURATION_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Why something is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a duration.
    #[error("`{given}` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d{}", suggestion.as_ref().map(|m| format!("; did you mean `{m}`?")).unwrap_or_default())]
    Duration {
        /// What was given.
        given: String,
        /// The text that was probably intended.
        suggestion: Option<String>,
    },
    /// Not a size.
    #[error("`{given}` is not a size: write a number and a unit, such as 500MB or 1GB")]
    Size {
        /// What was given.
        given: String,
    },
}

/// Reads `500ms`, `30s`, `10m`, `1h30m`, `2d`, `1.5h`. A bare number such as `10` or `0.5` is in
/// seconds, as with `timeout` and `sleep`.
pub fn parse(given: &str) -> Result<Duration, QuantityError> {
    let text = given.trim();
    seconds(text).or_else(|| parts(text)).filter(|d| *d <= DURATION_MAX).ok_or_else(|| {
        QuantityError::Duration { given: given.chars().take(40).collect(), suggestion: suggestion(text) }
    })
}

/// A number without a unit.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse::<f64>().ok().filter(|_| is_number)?;
    Duration::try_from_secs_f64(number).ok()
}

fn parts(mut text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = text[..digits].parse().ok()?;
        let rest = &text[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number * unit).ok()?;
        total = total.checked_add(part)?;
        text = rest[letters..].trim_start();
    }
    Some(total)
}

/// The duration that was probably intended by a unit in capitals.
fn suggestion(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase().replace(' ', "");
    (lower != text && parts(&lower).is_some()).then_some(lower)
}

/// Reads `500MB`, `1GB`, `64k`: powers of 1024.
pub fn parse_size(given: &str) -> Result<u64, QuantityError> {
    let error = || QuantityError::Size { given: given.chars().take(40).collect() };
    let text = given.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| error())?;
    let shift = match text[digits..].trim() {
        "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "" if number == 0 => 0,
        _ => return Err(error()),
    };
    number.checked_mul(1 << shift).filter(|n| *n <= 1 << 50).ok_or_else(error)
}

/// As people read it: `340 ms`, `1.1 s`, `41 s`, `4m 20s`, `2h 05m`, `3d 4h`.
pub fn shown(of: Duration) -> String {
    let ms = of.as_millis();
    let tenths = (ms + 50) / 100;
    let seconds = (ms + 500) / 1_000;
    let minutes = seconds / 60;
    let hours = minutes / 60;
    if ms < 1_000 {
        format!("{ms} ms")
    } else if tenths < 100 && !tenths.is_multiple_of(10) {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 60 {
        format!("{seconds} s")
    } else if minutes < 60 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else if hours < 24 {
        format!("{hours}h {:02}m", minutes % 60)
    } else {
        format!("{}d {}h", hours / 24, hours % 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (given, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("1h 5s", 3_605_000),
            ("0", 0),
            ("10", 10_000),
            ("0.5", 500),
            (" 90 ", 90_000),
        ] {
            assert_eq!(parse(given).unwrap().as_millis(), millis, "{given}");
        }
    }

    #[test]
    fn refuses_the_rest_with_a_suggestion() {
        for given in [
            "", ".", "m", "-5", "1h30", "1e3", "inf", "10x", "-5s", "1..5s", "9999999d", "s10", "1e9s",
            "NaN", "5 apples",
        ] {
            assert!(parse(given).is_err(), "{given}");
        }
        assert!(parse("10M").unwrap_err().to_string().ends_with("did you mean `10m`?"));
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("1GB").unwrap(), 1 << 30);
        assert_eq!(parse_size("64k").unwrap(), 65_536);
        for bad in ["", "x", "10", "99999999TB", "-1k"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_length_has_its_unit() {
        let text = |ms| shown(Duration::from_millis(ms));
        assert_eq!(text(0), "0 ms");
        assert_eq!(text(340), "340 ms");
        assert_eq!(text(999), "999 ms");
        assert_eq!(text(1_000), "1 s");
        assert_eq!(text(1_149), "1.1 s");
        assert_eq!(text(9_949), "9.9 s");
        assert_eq!(text(9_950), "10 s");
        assert_eq!(text(41_400), "41 s");
        assert_eq!(text(59_500), "1m 00s");
        assert_eq!(text(260_000), "4m 20s");
        assert_eq!(text(3_599_400), "59m 59s");
        assert_eq!(text(3_599_500), "1h 00m");
        assert_eq!(text(7_500_000), "2h 05m");
        assert_eq!(text(86_399_000), "23h 59m");
        assert_eq!(text(86_400_000), "1d 0h");
        assert_eq!(text(3 * 86_400_000 + 4 * 3_600_000), "3d 4h");
        assert!(!shown(Duration::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let _ = parse(&text);
            let _ = parse_size(&text);
        }
    }
}
