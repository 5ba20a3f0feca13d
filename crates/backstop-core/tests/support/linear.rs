//! Whether the time that a reader takes grows with its text and with nothing else: texts of
//! doubling size, in the thread's own time, so that other programs on the machine do not count.

use std::time::Duration;

/// How many times the text is doubled.
const DOUBLINGS: u32 = 4;
/// Time grows with this power of the size at most. Linear is 1, quadratic is 2.
const POWER_MAX: f64 = 1.5;
/// Shorter timings say nothing.
const TIME_MIN: Duration = Duration::from_micros(30);
/// A timing that is off is taken again.
const TRIES: u32 = 4;

/// How long this thread has worked.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of ours, which the call fills in.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "the clock of this thread cannot be read");
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// The better of two timings.
fn timed(read: &dyn Fn(&str), text: &str) -> Duration {
    let timing = |_| {
        let begun = cpu_time();
        read(text);
        cpu_time().saturating_sub(begun)
    };
    (0..2).map(timing).min().unwrap_or_default().max(TIME_MIN)
}

/// The power of the size with which the times grow: the slope of the line through their logarithms.
fn power(times: &[Duration]) -> f64 {
    let points: Vec<(f64, f64)> =
        (0u32..).map(f64::from).zip(times.iter().map(|t| t.as_secs_f64().log2())).collect();
    let count = f64::from(u32::try_from(points.len()).unwrap());
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let rise: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let run: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    rise / run
}

/// Reads a piece of text that is repeated up to `bytes_max` bytes, in texts of doubling size.
pub(crate) fn assert_linear(name: &str, piece: &str, bytes_max: usize, read: &dyn Fn(&str)) {
    let text = |bytes: usize| piece.repeat(bytes / piece.len());
    let texts: Vec<String> = (0..=DOUBLINGS).rev().map(|n| text(bytes_max >> n)).collect();
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let times: Vec<Duration> = texts.iter().map(|text| timed(read, text)).collect();
        if power(&times) < POWER_MAX {
            return;
        }
        seen.push(times);
    }
    panic!("{name}, {piece:?} again and again up to {bytes_max} bytes: {seen:?}");
}
