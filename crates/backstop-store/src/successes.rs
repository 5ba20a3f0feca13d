//! Successes that leave no run: only their number is kept, a row for each surface and day. What
//! models used is kept in the same way, by model.

use crate::{Journal, StoreError};
use backstop_core::{AgentUse, Timestamp, Usage};
use rusqlite::params;
use std::collections::BTreeMap;

/// What the keys of these rows begin with.
const PREFIX: &str = "successes ";
/// What the keys of rows about usage begin with.
const USAGE: &str = "usage ";
/// How many characters of a model's name are kept.
const MODEL_CHARS_MAX: usize = 80;

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

    /// Adds to what each model used today.
    pub fn add_usage(&self, usage: &BTreeMap<String, Usage>) -> Result<(), StoreError> {
        let day = day(self.now());
        self.write(false, |tx| {
            for (model, usage) in usage {
                let model: String = model
                    .chars()
                    .filter(|c| !c.is_whitespace() && !c.is_control())
                    .take(MODEL_CHARS_MAX)
                    .collect();
                let cost = usage.cost_usd.map(|cost| (cost * 1e6).round());
                let numbers = [
                    ("in", Some(usage.input_tokens)),
                    ("out", Some(usage.output_tokens)),
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    // A cost is a small sum.
                    ("cost", cost.map(|cost| cost.max(0.0) as u64)),
                ];
                for (what, number) in numbers {
                    let Some(number) = number else { continue };
                    tx.execute(
                        "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                         ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
                        params![format!("{USAGE}{day} {what} {model}"), number.cast_signed()],
                    )?;
                }
            }
            Ok(())
        })
    }

    /// What each model used since this day, as far as requests went through the proxy.
    pub fn usage(&self, since: Timestamp) -> Result<BTreeMap<String, AgentUse>, StoreError> {
        let from = format!("{USAGE}{}", day(since));
        self.db.read(|conn| {
            let mut rows = conn.prepare("SELECT key, value FROM meta WHERE key >= ?1 AND key < ?2")?;
            let mut rows = rows.query(params![from, format!("{USAGE}~")])?;
            let mut sums: BTreeMap<String, AgentUse> = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let (key, number): (String, i64) = (row.get(0)?, row.get(1)?);
                let number = number.cast_unsigned();
                let mut parts = key.splitn(4, ' ').skip(2);
                let (Some(what), Some(model)) = (parts.next(), parts.next()) else { continue };
                let sum = sums.entry(model.to_owned()).or_default();
                match what {
                    "in" => sum.tokens_in += number,
                    "out" => sum.tokens_out += number,
                    "cost" => sum.cost_millionths = Some(sum.cost_millionths.unwrap_or(0) + number),
                    _ => {}
                }
            }
            Ok(sums)
        })
    }
}

/// `2026-11-16`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}
