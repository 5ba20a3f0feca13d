//! Time that nobody can set: how long ago something was, by the clock that counts since the machine
//! was started, sleep included.
//!
//! A clock on the wall may be set back or forward by days; what ends "in an hour" must still end
//! after an hour. So a point in time is stored with its [`BootTime`], and [`ClockReading::settle`]
//! says where it lies on the wall clock of now. Pure: both clocks are arguments.

use crate::Timestamp;

/// Two clocks are read one after the other: a smaller difference between them says nothing.
const TOLERANCE_MS: u64 = 1_000;

/// A time since the machine was started, which only means something until it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootTime {
    /// Which start of the machine this is.
    pub boot: i64,
    /// The time since then in milliseconds, sleep included.
    pub millis: i64,
}

/// One look at both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The clock on the wall.
    pub wall: Timestamp,
    /// The time since the machine was started, where that is known.
    pub boot: Option<BootTime>,
}

impl ClockReading {
    /// The boot time of a point on the wall clock, as it is set now.
    pub fn stamp(&self, at: Timestamp) -> Option<BootTime> {
        let ago = self.wall.as_millis().saturating_sub(at.as_millis());
        self.boot.map(|boot| BootTime { millis: boot.millis.saturating_sub(ago), ..boot })
    }

    /// Where a point in time lies on the wall clock as it is set now: moved by as much as the clock
    /// was set back or forward since.
    pub fn settle(&self, at: Timestamp, stamp: Option<BootTime>) -> Timestamp {
        match (self.boot, stamp) {
            (Some(now), Some(then)) if now.boot == then.boot => {
                let passed = now.millis.saturating_sub(then.millis);
                let by_boot = self.wall.as_millis().saturating_sub(passed);
                if at.as_millis().abs_diff(by_boot) > TOLERANCE_MS {
                    Timestamp::from_millis(by_boot)
                } else {
                    at
                }
            }
            _ => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wall: i64, boot: i64, millis: i64) -> ClockReading {
        ClockReading { wall: Timestamp::from_millis(wall), boot: Some(BootTime { boot, millis }) }
    }

    #[test]
    fn a_clock_that_was_set_moves_what_was_noted_before() {
        const DAYS: i64 = 10 * 24 * 3600 * 1000;
        let then = reading(1_000 * DAYS, 7, 50_000);
        let stamp = then.stamp(then.wall);
        let back = reading(990 * DAYS, 7, 80_000);
        assert_eq!(back.settle(then.wall, stamp), Timestamp::from_millis(990 * DAYS - 30_000));
        let forward = reading(1_010 * DAYS, 7, 80_000);
        assert_eq!(forward.settle(then.wall, stamp), Timestamp::from_millis(1_010 * DAYS - 30_000));
        // On another boot, without a boot clock, within the tolerance: as it was.
        assert_eq!(reading(990 * DAYS, 8, 10).settle(then.wall, stamp), then.wall);
        assert_eq!(ClockReading { boot: None, ..back }.settle(then.wall, stamp), then.wall);
        let near = reading(1_000 * DAYS + 29_500, 7, 80_000);
        assert_eq!(near.settle(then.wall, stamp), then.wall);
    }
}
