//! Statistics of a project's journal: how many attempts, which errors, what retries cured, and
//! where the time went.
//!
//! Only columns and one index are read, and no event's text: a million events take less than a
//! second. It must not judge or print: the caller does.

mod fold;
mod label;

pub use label::operation_label;

use crate::counted::Counted;
use crate::{Journal, StoreError};
use backstop_core::{AgentUse, Outcome, Reason, Stats, Timestamp};
use fold::{CountedEvent, Fold};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many operations are counted separately.
const OPERATIONS_MAX: usize = 10_000;
/// How many operations are listed; the others are added up.
const OPERATIONS_LISTED_MAX: usize = 50;

/// What is counted. The default counts everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsFilter {
    /// Events that were recorded, and runs that began, at this time or later.
    pub since: Option<Timestamp>,
    /// Only runs whose operation contains this, whatever the case of its ASCII letters.
    pub operation_contains: Option<String>,
    /// Runs of these surfaces are not counted.
    pub surfaces_left_out: Vec<String>,
}

/// The run that events belong to.
struct Owner {
    n: i64,
    operation: u32,
    is_report: bool,
}

/// The surface of errors that hooks are told of.
const HOOK: &str = "hook";
/// What "lately" means for the rate of reported errors.
const HOUR: Duration = Duration::from_secs(3600);

impl Journal {
    /// Adds everything up.
    pub fn stats(&self, filter: &StatsFilter) -> Result<Stats, StoreError> {
        self.db.read(|conn| {
            // One transaction, so that both queries see the same data.
            let moment = conn.unchecked_transaction()?;
            let mut stats = Stats::default();
            let mut labels = label::Labels::new(OPERATIONS_MAX);
            let owners = runs(&moment, filter, &mut stats, &mut labels)?;
            let hour_ago = self.now().before(HOUR);
            let fold = events(&moment, filter, &owners, labels.len(), hour_ago)?;
            fold.into_stats(&mut stats, labels, OPERATIONS_LISTED_MAX);
            stats.used = agent_use(&moment, filter, &owners)?;
            Ok(stats)
        })
    }
}

/// Counts the runs, and lists which runs the events belong to.
fn runs(
    conn: &Connection,
    filter: &StatsFilter,
    stats: &mut Stats,
    labels: &mut label::Labels,
) -> rusqlite::Result<Vec<Owner>> {
    let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
    let contains = filter.operation_contains.as_ref().map(|text| text.to_ascii_lowercase());
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    let mut reported: BTreeMap<String, u64> = BTreeMap::new();
    let mut owners = Vec::new();
    let mut statement =
        conn.prepare("SELECT n, started_at, surface, operation, outcome FROM runs ORDER BY n")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let operation = row.get_ref(3)?.as_str_or_null()?.unwrap_or_default();
        let surface = row.get_ref(2)?.as_str()?;
        let unwanted = contains.as_ref().is_some_and(|c| !operation.to_ascii_lowercase().contains(c));
        if unwanted || filter.surfaces_left_out.iter().any(|left| left == surface) {
            continue;
        }
        let is_report = surface == HOOK;
        owners.push(Owner { n: row.get(0)?, operation: labels.of(operation), is_report });
        if row.get::<_, i64>(1)? < since {
            continue;
        }
        match row.get_ref(4)?.as_str_or_null()? {
            None => stats.runs_open += 1,
            Some(outcome) => {
                count(&mut outcomes, outcome);
                if is_report {
                    count(&mut reported, outcome);
                }
            }
        }
    }
    let in_order = |counts: &BTreeMap<String, u64>| {
        let count = |outcome: Outcome| Some((outcome, counts.get(outcome.name()).copied()?));
        OUTCOMES.into_iter().filter_map(count).collect()
    };
    stats.runs = in_order(&outcomes);
    stats.reported.outcomes = in_order(&reported);
    Ok(owners)
}

/// What the agents of plans used. Only events of plans are read for it: they are few.
fn agent_use(conn: &Connection, filter: &StatsFilter, owners: &[Owner]) -> rusqlite::Result<AgentUse> {
    let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
    let mut used = AgentUse::default();
    let mut statement = conn.prepare(
        "SELECT events.run, body -> '$.delivery.tokens_in', body -> '$.delivery.tokens_out', \
         body -> '$.delivery.cost_millionths' \
         FROM runs JOIN events ON events.run = runs.n \
         WHERE runs.surface = 'run' AND events.kind = 'attempt.finished' AND events.at >= ?1",
    )?;
    let mut rows = statement.query([since])?;
    while let Some(row) = rows.next()? {
        let run: i64 = row.get(0)?;
        if owners.binary_search_by_key(&run, |owner| owner.n).is_err() {
            continue;
        }
        let number = |column: usize| -> rusqlite::Result<Option<u64>> {
            Ok(row.get::<_, Option<String>>(column)?.and_then(|text| text.parse().ok()))
        };
        used.tokens_in = used.tokens_in.saturating_add(number(1)?.unwrap_or(0));
        used.tokens_out = used.tokens_out.saturating_add(number(2)?.unwrap_or(0));
        if let Some(cost) = number(3)? {
            used.cost_millionths = Some(used.cost_millionths.unwrap_or(0).saturating_add(cost));
        }
    }
    Ok(used)
}

/// Counts an outcome, without an allocation where it was seen before.
fn count(counts: &mut BTreeMap<String, u64>, outcome: &str) {
    match counts.get_mut(outcome) {
        Some(count) => *count += 1,
        None => drop(counts.insert(outcome.to_owned(), 1)),
    }
}

const OUTCOMES: [Outcome; 7] = [
    Outcome::Done,
    Outcome::Failed,
    Outcome::Partial,
    Outcome::Deferred,
    Outcome::Unconfirmed,
    Outcome::Interrupted,
    Outcome::Lost,
];

/// Adds the events up, run by run.
fn events(
    conn: &Connection,
    filter: &StatsFilter,
    owners: &[Owner],
    operations: usize,
    hour_ago: Timestamp,
) -> rusqlite::Result<Fold> {
    let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
    let mut fold = Fold::new(since, operations, hour_ago.as_millis());
    let mut owners = owners.iter().peekable();
    let mut current: Option<i64> = None;
    let mut statement = conn.prepare(
        "SELECT run, at, counted, reason, ok, ms FROM events INDEXED BY events_counted \
         WHERE counted IS NOT NULL ORDER BY run, seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let run: i64 = row.get(0)?;
        if current != Some(run) {
            // Both lists are ordered by run. Events of runs that are not wanted are skipped.
            while owners.next_if(|owner| owner.n < run).is_some() {}
            let Some(owner) = owners.next_if(|owner| owner.n == run) else {
                current = None;
                continue;
            };
            current = Some(run);
            fold.begin(owner.operation, owner.is_report);
        }
        // A kind of event that only a newer version counts is skipped.
        let Some(counted) = Counted::from_number(row.get(2)?) else { continue };
        let reason = match row.get_ref(3)?.as_str_or_null()? {
            Some(_) => Some(crate::summary::worded(row, 3, Reason::from_code)?),
            None => None,
        };
        fold.event(CountedEvent {
            at: row.get(1)?,
            counted,
            reason,
            ok: row.get(4)?,
            ms: row.get::<_, Option<i64>>(5)?.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
        });
    }
    Ok(fold)
}
