//! Times as people read them: local, with the name of the zone. JSON has UTC everywhere.
//!
//! The zone is the process's: the command line says once where it comes from, before anything is
//! shown. It is looked up when the first time is shown. Where nobody said, times are in UTC.

use backstop_core::{Timestamp, Zone};
use std::sync::OnceLock;

static SOURCE: OnceLock<fn() -> Zone> = OnceLock::new();
static ZONE: OnceLock<Zone> = OnceLock::new();

/// Sets where the zone comes from in which times are written for people. Only the first call
/// counts.
pub fn set_zone_source(source: fn() -> Zone) {
    let _ = SOURCE.set(source);
}

fn zone() -> &'static Zone {
    ZONE.get_or_init(|| SOURCE.get().map_or_else(Zone::default, |source| source()))
}

/// `14:40:59 CEST`.
pub fn time_of_day(at: Timestamp) -> String {
    zone().time_of_day(at)
}

/// `2025-08-21 14:40:59 CEST`.
pub fn date_time(at: Timestamp) -> String {
    zone().date_time(at)
}

/// A time near `now`: `14:40 CEST`, and with its date where that is another day.
pub fn near_time(at: Timestamp, now: Timestamp) -> String {
    zone().shown(at, now)
}

/// What work waits for, as people read it: a time as `time` writes it, or the condition as it is.
pub fn until_words(until: &str, time: impl FnOnce(Timestamp) -> String) -> String {
    Timestamp::parse_rfc3339(until).map_or_else(|| until.to_owned(), time)
}
