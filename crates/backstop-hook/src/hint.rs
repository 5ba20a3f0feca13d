//! The wait that somebody asks for, in what was said.

use backstop_core::wait::in_output;
use backstop_core::{Clock, Facts, Timestamp, Zone};
use std::time::Duration;

/// Adds the wait that a text asks for, where the rules found none. Only spans are read here: the
/// rules know the local zone, and read points in time.
pub(crate) fn add_wait(facts: &mut Facts, said: &str, at: Timestamp) {
    if facts.retry_after_seconds.is_some() || facts.resets_at.is_some() {
        return;
    }
    let wait = in_output(said, &Clock { now: None, zone: Zone::utc() });
    if let Some(after) = wait.map(|wait| wait.after).filter(|after| *after > Duration::ZERO) {
        facts.retry_after_seconds = Some(after.as_secs_f64());
        facts.resets_at = Some(at.after(after));
    }
}
