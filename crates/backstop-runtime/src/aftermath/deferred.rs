//! Work that was put aside: whether what it waits for has come.

use crate::admission::UNTIL_UNFROZEN;
use crate::machine_state;
use crate::project::Project;
use backstop_core::{Fault, Reason, Timestamp};
use backstop_store::Deferred;
use std::collections::HashMap;
use std::time::Duration;

/// How many services are asked whether they answer.
const ASKED_MAX: usize = 4;

/// What work waits for, as it is stored: the time at which a rate limit ends, in UTC, where that is
/// known; else the condition in words.
pub fn stored_until(until: &str, fault: &Fault, now: Timestamp) -> String {
    if fault.reason != Reason::RateLimited || until == UNTIL_UNFROZEN {
        return until.to_owned();
    }
    let stated = fault.facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let ends = fault.facts.resets_at.or_else(|| stated.map(|wait| now.after(wait)));
    ends.map_or_else(|| until.to_owned(), |at| at.to_string())
}

/// Whether what each waits for has come: the time is reached, the machine has room again, the
/// service answers. Nothing where that cannot be found out. Only this machine is asked.
pub fn readiness(project: &Project, works: &[Deferred]) -> Vec<Option<bool>> {
    if works.is_empty() {
        return Vec::new();
    }
    let short_of = machine_state::look(project).short_of;
    let is_frozen = project.frozen().is_some();
    let now = project.process.now();
    let mut asked: HashMap<String, Option<bool>> = HashMap::new();
    let mut ready = |work: &Deferred| {
        let resources = work.work.reason.waits_for_resources();
        if is_frozen {
            return Some(false);
        }
        if !resources.is_empty() {
            return Some(machine_state::has_passed(resources, &short_of));
        }
        if work.work.until.raw() == UNTIL_UNFROZEN {
            return Some(true);
        }
        if let Some(at) = Timestamp::parse_rfc3339(work.work.until.raw()) {
            return Some(at <= now);
        }
        let address = work.work.address.as_deref()?;
        // Many may wait for the same one. Those that are not asked take nobody's place.
        match asked.get(address) {
            Some(known) => *known,
            None if asked.values().flatten().count() >= ASKED_MAX => None,
            None => *asked.entry(address.to_owned()).or_insert_with(|| machine_state::answers(address)),
        }
    };
    works.iter().map(&mut ready).collect()
}

/// The flags and the command of what was put aside.
pub fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&[], words),
    }
}

/// The flags and the command; the id of a task is one word, whatever it is.
pub fn words(work: &Deferred) -> (&[String], &[String]) {
    if work.work.is_task { (&[], &work.work.argv) } else { split(&work.work.argv) }
}

/// The run whose confirmation it waits for, if it does.
pub fn waits_for_confirmation(words: &[String]) -> Option<&str> {
    let (flags, _) = split(words);
    let at = flags.iter().position(|flag| flag == "--confirm")?;
    flags.get(at + 1).map(String::as_str)
}
