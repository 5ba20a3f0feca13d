//! The time and the place at which something is read: without them a time of day means nothing.

use crate::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// The time and the local time zone of whoever reads.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The time. Where it is not known, only spans are read, and no points in time.
    pub now: Option<Timestamp>,
    /// The zone of times that name none.
    pub zone: Zone,
}

impl Clock {
    /// At this time, with UTC as the local zone.
    pub fn utc(now: Timestamp) -> Self {
        Self { now: Some(now), zone: Zone::utc() }
    }
}

/// A time zone. The data of all zones is compiled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

/// The longest name of a zone.
const NAME_BYTES_MAX: usize = 64;

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The zone of this name: `Europe/Berlin`, `CET`, `PST`, `UTC`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim();
        if name.len() > NAME_BYTES_MAX || name.is_empty() {
            return None;
        }
        abbreviated(name).or_else(|| offset_of(name)).or_else(|| {
            // A word that happens to be a zone's name (`Cuba`, `Turkey`) is none in a sentence.
            let is_path = name.contains('/');
            is_path.then(|| TimeZone::get(name).ok()).flatten().map(Self)
        })
    }

    /// The zone that the value of `TZ` names: a name, or a rule such as
    /// `CET-1CEST,M3.5.0,M10.5.0/3`.
    pub fn from_variable(value: &str) -> Option<Self> {
        let value = value.strip_prefix(':').unwrap_or(value).trim();
        if value.is_empty() || value.len() > NAME_BYTES_MAX {
            return None;
        }
        TimeZone::get(value).or_else(|_| TimeZone::posix(value)).ok().map(Self)
    }

    /// The zone of a file in the format of `/etc/localtime`; `name` is what it is known by.
    pub fn from_file(name: &str, data: &[u8]) -> Option<Self> {
        TimeZone::tzif(name, data).ok().map(Self)
    }

    pub(super) fn offset(seconds: i32) -> Option<Self> {
        Some(Self(Offset::from_seconds(seconds).ok()?.to_time_zone()))
    }

    pub(super) fn inner(&self) -> &TimeZone {
        &self.0
    }

    /// `2025-08-21 14:40:59 CEST`.
    pub fn date_time(&self, at: Timestamp) -> String {
        self.write(at, "%Y-%m-%d %H:%M:%S %Z")
    }

    /// `14:40:59 CEST`.
    pub fn time_of_day(&self, at: Timestamp) -> String {
        self.write(at, "%H:%M:%S %Z")
    }

    fn write(&self, at: Timestamp, format: &str) -> String {
        let Ok(moment) = jiff::Timestamp::from_millisecond(at.as_millis()) else { return at.to_string() };
        let local = moment.to_zoned(self.0.clone());
        jiff::fmt::strtime::format(format, &local).unwrap_or_else(|_| at.to_string())
    }

    /// A time as people here write it: `15:20 CET`, and with its date, `2026-11-20 08:00 CET`,
    /// where that is not today.
    pub fn shown(&self, at: Timestamp, now: Timestamp) -> String {
        let here = |at: Timestamp| {
            let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
            Some(at.to_zoned(self.0.clone()))
        };
        let Some(at_here) = here(at) else { return at.to_string() };
        let format = if here(now).is_some_and(|now| now.date() == at_here.date()) {
            "%H:%M %Z"
        } else {
            "%Y-%m-%d %H:%M %Z"
        };
        at_here.strftime(format).to_string()
    }
}

/// `GMT-3`, `UTC+05:30`, `UTC+0200`.
fn offset_of(name: &str) -> Option<Zone> {
    let rest = ["GMT", "UTC", "gmt", "utc"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let (sign, digits) = match rest.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| text.parse::<i32>().ok().filter(|_| (1..=2).contains(&text.len()));
    let (hours, minutes) = (number(hours).filter(|h| *h <= 14)?, number(minutes).filter(|m| *m < 60)?);
    Zone::offset(sign * (hours * 3600 + minutes * 60))
}

/// Zones by the letters that programs print. Where letters have several meanings, the one that
/// English programs mean.
fn abbreviated(name: &str) -> Option<Zone> {
    let hours = |h: f64| Zone::offset((h * 3600.0) as i32);
    let named = |name: &str| TimeZone::get(name).ok().map(Zone);
    match name {
        "UTC" | "GMT" | "Z" | "utc" | "gmt" | "z" | "UCT" | "Etc/UTC" => Some(Zone::utc()),
        "PST" => hours(-8.0),
        "PDT" | "MST" => hours(-7.0),
        "MDT" | "CST" => hours(-6.0),
        "CDT" | "EST" => hours(-5.0),
        "EDT" => hours(-4.0),
        "PT" => named("America/Los_Angeles"),
        "MT" => named("America/Denver"),
        "CT" => named("America/Chicago"),
        "ET" => named("America/New_York"),
        "WET" => hours(0.0),
        "BST" | "CET" | "WEST" | "MEZ" => hours(1.0),
        "CEST" | "EET" | "MESZ" | "SAST" => hours(2.0),
        "EEST" | "MSK" => hours(3.0),
        "IST" => hours(5.5),
        "SGT" | "HKT" | "AWST" => hours(8.0),
        "JST" | "KST" => hours(9.0),
        "AEST" => hours(10.0),
        "AEDT" => hours(11.0),
        "NZST" => hours(12.0),
        "NZDT" => hours(13.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_local_time_with_its_zone() {
        let summer = Timestamp::parse_rfc3339("2025-08-21T12:40:59Z").unwrap();
        let winter = Timestamp::parse_rfc3339("2025-12-21T12:40:59Z").unwrap();
        let berlin = Zone::from_variable("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(berlin.date_time(summer), "2025-08-21 14:40:59 CEST");
        assert_eq!(berlin.time_of_day(winter), "13:40:59 CET");
        assert_eq!(Zone::default().date_time(summer), "2025-08-21 12:40:59 UTC");
        let unnamed = Zone::from_variable("<+0530>-5:30").unwrap();
        assert_eq!(unnamed.time_of_day(summer), "18:10:59 +0530");
        assert!(Zone::from_variable("nowhere").is_none() && Zone::from_file("local", b"TZif").is_none());
        for millis in [i64::MIN, i64::MAX] {
            assert!(!berlin.date_time(Timestamp::from_millis(millis)).is_empty());
        }
    }
}
