//! The delays between attempts. Pure: randomness is an argument.

use std::time::Duration;

/// The longest delay that a policy may have: a day.
pub const DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The delays before jitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delays {
    /// One delay for each failed attempt, in order; the last repeats. Empty means no delay.
    Fixed(Vec<Duration>),
    /// `base` x 2^n, never above `cap`. n counts failed attempts from `from`.
    Exponential {
        /// The delay for n = 0.
        base: Duration,
        /// The longest delay, before jitter.
        cap: Duration,
        /// The n of the first failed attempt.
        from: u32,
    },
}

/// The random change of a delay, so that operations that failed together are not retried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// None.
    None,
    /// Up to this many percent longer or shorter.
    Symmetric(u8),
    /// Up to this many percent longer.
    Additive(u8),
}

/// A table of delays with its jitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    /// The delays.
    pub delays: Delays,
    /// The jitter.
    pub jitter: Jitter,
}

/// One delay, and how it was computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// The delay before jitter.
    pub plain: Duration,
    /// The jitter in percent; negative if it made the delay shorter.
    pub jitter_percent: f64,
    /// The resulting delay.
    pub delay: Duration,
}

impl Backoff {
    /// No delay at all.
    pub fn none() -> Backoff {
        Backoff { delays: Delays::Fixed(Vec::new()), jitter: Jitter::None }
    }

    /// The delay after this many failed attempts, counted from 1. `random` is in `0.0..1.0`.
    pub fn wait(&self, failed: u32, random: f64) -> Wait {
        let plain = self.plain(failed);
        let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
        let share = match self.jitter {
            Jitter::None => 0.0,
            Jitter::Symmetric(percent) => f64::from(percent.min(100)) / 100.0 * (random * 2.0 - 1.0),
            Jitter::Additive(percent) => f64::from(percent.min(100)) / 100.0 * random,
        };
        Wait { plain, jitter_percent: share * 100.0, delay: plain.mul_f64((1.0 + share).max(0.0)) }
    }

    /// The longest possible delay.
    pub fn ceiling(&self) -> Duration {
        let longest = match &self.delays {
            Delays::Fixed(list) => list.iter().copied().max().unwrap_or_default(),
            Delays::Exponential { cap, .. } => *cap,
        };
        let percent = match self.jitter {
            Jitter::None => 0,
            Jitter::Symmetric(percent) | Jitter::Additive(percent) => percent.min(100),
        };
        longest.min(DELAY_MAX).mul_f64(1.0 + f64::from(percent) / 100.0)
    }

    fn plain(&self, failed: u32) -> Duration {
        let wait = match &self.delays {
            Delays::Fixed(list) => {
                let at = (failed.max(1) - 1) as usize;
                list.get(at).or(list.last()).copied().unwrap_or_default()
            }
            Delays::Exponential { base, cap, from } => {
                let n = from.saturating_add(failed.max(1) - 1);
                let factor = 1u32.checked_shl(n).filter(|f| *f > 0);
                factor.and_then(|f| base.checked_mul(f)).map_or(*cap, |wait| wait.min(*cap))
            }
        };
        wait.min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(backoff: &Backoff, count: u32) -> Vec<f64> {
        (1..=count).map(|failed| backoff.wait(failed, 0.5).delay.as_secs_f64()).collect()
    }

    #[test]
    fn doubling_stops_at_the_cap() {
        let delays =
            Delays::Exponential { base: Duration::from_secs(1), cap: Duration::from_secs(60), from: 0 };
        let backoff = Backoff { delays, jitter: Jitter::Symmetric(20) };
        assert_eq!(seconds(&backoff, 8), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        assert_eq!(backoff.wait(1, 0.0).delay, Duration::from_millis(800));
        assert_eq!(backoff.wait(1, 1.0).delay, Duration::from_millis(1200));
        assert_eq!(backoff.wait(u32::MAX, 0.5).delay, Duration::from_secs(60));
    }

    #[test]
    fn a_list_repeats_its_last() {
        let list = [0, 1, 2].map(Duration::from_secs).to_vec();
        let backoff = Backoff { delays: Delays::Fixed(list), jitter: Jitter::None };
        assert_eq!(seconds(&backoff, 5), [0.0, 1.0, 2.0, 2.0, 2.0]);
        assert_eq!(seconds(&Backoff::none(), 2), [0.0, 0.0]);
    }

    #[test]
    fn additive_jitter_only_lengthens() {
        let delays =
            Delays::Exponential { base: Duration::from_secs(2), cap: Duration::from_secs(300), from: 1 };
        let backoff = Backoff { delays, jitter: Jitter::Additive(10) };
        assert_eq!(backoff.wait(1, 0.0).delay, Duration::from_secs(4));
        assert_eq!(backoff.wait(1, 1.0).delay, Duration::from_millis(4400));
        assert_eq!(backoff.wait(9, 0.0).delay, Duration::from_secs(300));
    }

    proptest! {
        #[test]
        fn never_negative_never_above_the_cap_and_its_jitter(
            base_ms in 0u64..10_000_000, cap_ms in 0u64..100_000_000, from in 0u32..5,
            percent in any::<u8>(), additive: bool, failed: u32, random in any::<f64>(),
        ) {
            let delays = Delays::Exponential { base: Duration::from_millis(base_ms), cap: Duration::from_millis(cap_ms), from };
            let jitter = if additive { Jitter::Additive(percent) } else { Jitter::Symmetric(percent) };
            let backoff = Backoff { delays, jitter };
            let wait = backoff.wait(failed, random);
            prop_assert!(wait.delay <= backoff.ceiling());
            prop_assert!(wait.plain <= Duration::from_millis(cap_ms));
            if additive { prop_assert!(wait.delay >= wait.plain); }
        }
    }
}
