//! Successes that leave no run, and what models used, are counted in memory and written with the
//! next run or at the end.

use backstop_core::{Timestamp, Usage};
use backstop_store::Journal;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many seconds with successes are remembered.
const SECONDS_MAX: usize = 3600;

/// The successes of this process that are not written yet, by surface, and the usage by model.
#[derive(Debug, Default)]
pub struct Successes {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    usage: Mutex<BTreeMap<String, Usage>>,
    /// How many there were in each of the last seconds.
    recent: Mutex<VecDeque<(i64, u64)>>,
}

impl Successes {
    /// One more.
    pub fn add(&self, surface: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(surface).or_insert(0) += 1;
    }

    /// One was just now: the retry budget counts it, although no event says so.
    pub(super) fn note(&self, now: Timestamp) {
        let second = now.as_millis() / 1000;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        match recent.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => recent.push_back((second, 1)),
        }
        while recent.len() > SECONDS_MAX {
            recent.pop_front();
        }
    }

    /// How many there were since then.
    pub(super) fn since(&self, since: Timestamp) -> u64 {
        let second = since.as_millis() / 1000;
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().filter(|(at, _)| *at >= second).map(|(_, count)| count).sum()
    }

    /// What a request has used of a model.
    pub fn add_usage(&self, model: &str, usage: Usage) {
        let mut all = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = all.get(model).copied().unwrap_or_default().plus(usage);
        all.insert(model.to_owned(), sum);
    }

    /// Whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
            && self.usage.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Writes what is not written yet. What cannot be written now is written the next time. Nobody
    /// who counts waits for that.
    pub fn write(&self, journal: &Journal) {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        if !counts.is_empty() && journal.add_successes(&counts).is_err() {
            let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            for (surface, count) in counts {
                *all.entry(surface).or_insert(0) += count;
            }
        }
        let usage = std::mem::take(&mut *self.usage.lock().unwrap_or_else(PoisonError::into_inner));
        if !usage.is_empty() && journal.add_usage(&usage).is_err() {
            usage.iter().for_each(|(model, usage)| self.add_usage(model, *usage));
        }
    }
}
