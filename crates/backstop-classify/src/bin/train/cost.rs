//! Measures what the learned back-off costs where it is asked: time for each failure and memory.

use crate::fit::Sample;
use backstop_classify::{Classifier, learned};
use std::time::{Duration, Instant};

/// How often each failure is classified.
const TIMES: u32 = 5;

/// Prints the time that a failure takes with the back-off and without it, and the memory in use
/// before and after its first answer.
pub(crate) fn print(samples: &[Sample]) {
    let (with, without) = (Classifier::builtin(), Classifier::builtin().learning(false));
    let signals: Vec<_> = samples.iter().filter(|s| s.is_unseen).map(|s| &s.failure.signal).collect();
    let before = resident_kilobytes();
    let asked = signals.iter().filter(|signal| {
        let fault = with.classify(signal);
        fault.is_some_and(|fault| fault.evidence.first().is_some_and(|piece| piece.rule == "learned"))
    });
    let asked: Vec<_> = asked.collect();
    let after = resident_kilobytes();
    let mean = |classifier: &Classifier| {
        #[allow(clippy::disallowed_methods)] // Time is what is measured.
        let start = Instant::now();
        for _ in 0..TIMES {
            for signal in &asked {
                classifier.classify(signal);
            }
        }
        start.elapsed() / (TIMES * u32::try_from(asked.len().max(1)).unwrap_or(u32::MAX))
    };
    let (with, without) = (mean(&with), mean(&without));
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{} failures are answered by the back-off", asked.len());
    println!(
        "{:.3} ms each with it, {:.3} ms without it: {:.3} ms for the back-off (at most 2 ms are wanted)",
        milliseconds(with),
        milliseconds(without),
        milliseconds(with.saturating_sub(without)),
    );
    println!(
        "{} KB more memory after {} failures, {} KB of them the table (at most 4,096 KB are wanted)",
        after.saturating_sub(before),
        signals.len(),
        learned::builtin().map_or(0, |table| table.len_bytes() / 1024),
    );
}

/// The most memory that this process has had in use.
fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0)
}
