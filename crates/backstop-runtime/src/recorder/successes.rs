//! Successes that leave no run are counted in memory, and written with the next run or at the end.

use backstop_store::Journal;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The successes of this process that are not written yet, by surface.
#[derive(Debug, Default)]
pub struct Successes(Mutex<BTreeMap<&'static str, u64>>);

impl Successes {
    /// One more.
    pub fn add(&self, surface: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(surface).or_insert(0) += 1;
    }

    /// Writes what is not written yet. What cannot be written now is written the next time.
    pub fn write(&self, journal: &Journal) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !counts.is_empty() && journal.add_successes(&counts).is_ok() {
            counts.clear();
        }
    }
}
