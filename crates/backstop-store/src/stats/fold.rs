//! Adds events up, run by run, in the order of their events.
//!
//! Within a run, a decision, a wait and a retry belong to the error before them, and a failed
//! attempt to the error right after it.

use super::label::Labels;
use crate::counted::Counted;
use backstop_core::{Counts, Reason, Reported, SafeText, Stats, Timestamp};
use std::collections::{BTreeMap, HashMap};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The columns of an event that are counted.
pub(super) struct CountedEvent {
    pub(super) at: i64,
    pub(super) counted: Counted,
    pub(super) reason: Option<Reason>,
    pub(super) ok: Option<bool>,
    pub(super) ms: u64,
}

/// The sums so far, and the position within a run.
pub(super) struct Fold {
    since: i64,
    total: Counts,
    reasons: HashMap<Reason, Counts>,
    operations: Vec<Counts>,
    days: BTreeMap<i64, Counts>,
    operation: usize,
    hour_ago: i64,
    /// Whether this run is a report of a hook.
    is_report: bool,
    reported: Reported,
    reported_reasons: HashMap<Reason, u64>,
    /// The reason of the last error in this run.
    last: Option<Reason>,
    /// The attempt that has just failed: when, and its duration. Its error comes next.
    failed: Option<(i64, u64)>,
    /// Delays that were decided. They were waited if another attempt ended after them.
    decided: Vec<(i64, Option<Reason>, u64)>,
}

impl Fold {
    pub(super) fn new(since: i64, operations: usize, hour_ago: i64) -> Self {
        Self {
            since,
            total: Counts::default(),
            reasons: HashMap::new(),
            operations: vec![Counts::default(); operations],
            days: BTreeMap::new(),
            operation: 0,
            hour_ago,
            is_report: false,
            reported: Reported::default(),
            reported_reasons: HashMap::new(),
            last: None,
            failed: None,
            decided: Vec::new(),
        }
    }

    /// Begins the next run.
    pub(super) fn begin(&mut self, operation: u32, is_report: bool) {
        self.count_failed();
        self.is_report = is_report;
        self.operation = usize::try_from(operation).unwrap_or(usize::MAX);
        self.last = None;
        self.decided.clear();
    }

    /// Counts the attempt that has just failed, and gives its duration.
    fn count_failed(&mut self) -> Option<u64> {
        let (at, ms) = self.failed.take()?;
        self.add(at, None, &Counts { attempts: 1, failed_ms: ms, attempts_ms: ms, ..Counts::default() });
        Some(ms)
    }

    /// Adds one event of the run.
    pub(super) fn event(&mut self, event: CountedEvent) {
        let at = event.at;
        match event.counted {
            Counted::AttemptFinished | Counted::AttemptLost => {
                self.count_failed();
                for (at, reason, ms) in std::mem::take(&mut self.decided) {
                    self.add(at, reason, &Counts { waited_ms: ms, ..Counts::default() });
                }
                let succeeded = event.ok == Some(true);
                let lost = event.counted == Counted::AttemptLost;
                if !succeeded && !lost {
                    self.failed = Some((at, event.ms));
                    return;
                }
                let counts = Counts {
                    attempts: 1,
                    succeeded: succeeded.into(),
                    lost: lost.into(),
                    attempts_ms: event.ms,
                    ..Counts::default()
                };
                self.add(at, None, &counts);
            }
            // What a person stopped, or whoever read its output, has neither failed nor succeeded.
            Counted::ErrorClassified if event.reason == Some(Reason::Interrupted) => {
                self.failed = None;
                self.last = event.reason;
            }
            Counted::ErrorClassified => {
                self.last = event.reason;
                let failed_ms = self.count_failed();
                if let (Some(reason), Some(ms), true) = (event.reason, failed_ms, at >= self.since) {
                    let sum = &mut self.reasons.entry(reason).or_default().failed_ms;
                    *sum = sum.saturating_add(ms);
                }
                self.add(at, event.reason, &Counts { errors: 1, ..Counts::default() });
                if let (Some(reason), true) = (event.reason, self.is_report && at >= self.since) {
                    self.report(at, reason);
                }
            }
            Counted::DecisionMade if event.ms > 0 => self.decided.push((at, self.last, event.ms)),
            Counted::DecisionMade => {}
            Counted::RecoveryAttempted => {
                let cured = u64::from(event.ok == Some(true));
                self.add(at, self.last, &Counts { retried: 1, cured, ..Counts::default() });
            }
            Counted::GuardWaited => {
                self.add(at, None, &Counts { guard_ms: event.ms, ..Counts::default() });
            }
        }
    }

    fn report(&mut self, at: i64, reason: Reason) {
        let when = Timestamp::from_millis(at);
        let reported = &mut self.reported;
        reported.errors += 1;
        reported.last_hour += u64::from(at >= self.hour_ago);
        reported.first = Some(reported.first.map_or(when, |first| first.min(when)));
        *self.reported_reasons.entry(reason).or_default() += 1;
    }

    fn add(&mut self, at: i64, reason: Option<Reason>, counts: &Counts) {
        if at < self.since {
            return;
        }
        self.total.add(counts);
        if let Some(reason) = reason {
            self.reasons.entry(reason).or_default().add(counts);
        }
        if let Some(operation) = self.operations.get_mut(self.operation) {
            operation.add(counts);
        }
        self.days.entry(at.div_euclid(DAY_MS)).or_default().add(counts);
    }

    /// The sums, in the order in which they are shown.
    pub(super) fn into_stats(mut self, stats: &mut Stats, labels: Labels, operations_max: usize) {
        self.count_failed();
        stats.total = self.total;
        let mut reasons: Vec<(Reason, u64)> = self.reported_reasons.into_iter().collect();
        reasons.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.code().cmp(b.code())));
        let outcomes = std::mem::take(&mut stats.reported.outcomes);
        stats.reported = Reported { reasons, outcomes, ..self.reported };
        stats.reasons = self.reasons.into_iter().collect();
        stats.reasons.sort_by(|(a, x), (b, y)| y.errors.cmp(&x.errors).then(a.code().cmp(b.code())));
        let labelled = labels.into_names().into_iter().zip(self.operations);
        let mut operations: Vec<(String, Counts)> =
            labelled.filter(|(_, counts)| *counts != Counts::default()).collect();
        let lost = |c: &Counts| c.failed_ms.saturating_add(c.waited_ms).saturating_add(c.guard_ms);
        operations
            .sort_by(|(a, x), (b, y)| lost(y).cmp(&lost(x)).then(y.attempts.cmp(&x.attempts)).then(a.cmp(b)));
        stats.operations_left_out = operations.len().saturating_sub(operations_max) as u64;
        operations.truncate(operations_max);
        stats.operations = operations.into_iter().map(|(name, c)| (SafeText::new(name), c)).collect();
        let first = |day: i64| Timestamp::from_millis(day.saturating_mul(DAY_MS));
        stats.days = self.days.into_iter().map(|(day, counts)| (first(day), counts)).collect();
    }
}
