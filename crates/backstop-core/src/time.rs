//! Wall time as a number of milliseconds since 1970, and the spellings in which servers and people
//! write it.
//!
//! The calendar is jiff's; its types stay in this file. Nothing here reads a clock.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A point in wall time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

/// The latest point that is believed when somebody else names it: the end of the year 9998.
const MILLIS_MAX: i64 = 253_370_764_799_999;

impl Timestamp {
    /// From milliseconds since 1970, held within the years that can be written.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(-MILLIS_MAX / 4, MILLIS_MAX))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// How long from `earlier` to this, nothing if this is not later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This much later.
    pub fn after(self, wait: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This much earlier.
    pub fn before(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Reads RFC 3339, such as `2025-08-21T12:40:59Z`.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at: jiff::Timestamp = text.trim().parse().ok()?;
        Some(Self::from_millis(at.as_millisecond()))
    }

    /// Reads an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn parse_http_date(text: &str) -> Option<Self> {
        // Servers get the day of the week wrong; the date counts.
        let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
        let at = parser.parse_timestamp(text.trim()).ok()?;
        Some(Self::from_millis(at.as_millisecond()))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse_rfc3339(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_spellings_and_writes_one() {
        let at = Timestamp::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(Timestamp::parse_rfc3339("1994-11-06T08:49:37Z"), Some(at));
        assert_eq!(at.to_string(), "1994-11-06T08:49:37.000Z");
        assert_eq!(Timestamp::parse_rfc3339("soon"), None);
        assert_eq!(Timestamp::parse_http_date("soon"), None);
    }

    #[test]
    fn extremes_can_be_written() {
        for millis in [i64::MIN, i64::MAX, 0, -1] {
            assert!(!Timestamp::from_millis(millis).to_string().ends_with("ms"));
        }
        assert_eq!(Timestamp::from_millis(0).since(Timestamp::from_millis(5)), Duration::ZERO);
    }
}
