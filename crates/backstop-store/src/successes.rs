//! Successes that leave no run: only their number is kept, a row for each surface and day.

use crate::{Journal, StoreError};
use backstop_core::Timestamp;
use rusqlite::params;
use std::collections::BTreeMap;

/// What the keys of these rows begin with.
const PREFIX: &str = "successes ";

impl Journal {
    /// Adds to the successes of each surface today.
    pub fn add_successes(&self, counts: &BTreeMap<&'static str, u64>) -> Result<(), StoreError> {
        let day = day(self.now());
        self.write(false, |tx| {
            for (surface, count) in counts {
                tx.execute(
                    "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                     ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
                    params![format!("{PREFIX}{day} {surface}"), count.cast_signed()],
                )?;
            }
            Ok(())
        })
    }

    /// The successes of each surface since this day.
    pub fn successes(&self, since: Timestamp) -> Result<BTreeMap<String, u64>, StoreError> {
        let from = format!("{PREFIX}{}", day(since));
        self.db.read(|conn| {
            let mut rows = conn.prepare("SELECT key, value FROM meta WHERE key >= ?1 AND key < ?2")?;
            let mut rows = rows.query(params![from, format!("{PREFIX}~")])?;
            let mut sums = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let (key, count): (String, i64) = (row.get(0)?, row.get(1)?);
                let surface = key.rsplit(' ').next().unwrap_or_default().to_owned();
                *sums.entry(surface).or_insert(0) += count.cast_unsigned();
            }
            Ok(sums)
        })
    }
}

/// `2026-11-16`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}
