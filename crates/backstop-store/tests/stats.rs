//! What the journal adds up to: exactly what the events say, and quickly.
//! `cargo test --release -p backstop-store --test stats -- --ignored --nocapture` measures a
//! million events.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod common;

use backstop_core::{Action, Counts, Decision, Event, EventKind, Fault, Outcome, Reason, Stats, Timestamp};
use backstop_store::{EventFilter, Journal, StatsFilter, StoreError, UnknownGroup, operation_label};
use common::{Place, START, attempt, classified, ended, finished, header, started};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn failed(attempt: u32, duration_ms: u64, output: &str) -> EventKind {
    EventKind::AttemptFinished {
        operation: "npm test".into(),
        attempt,
        success: false,
        duration_ms,
        exit: Some(1),
        signal: None,
        output: Some(output.into()),
        delivery: None,
    }
}

fn decided(attempt: u32, after: Duration, reclassified: Option<Reason>) -> EventKind {
    let action = Action::Retry { after, attempt: attempt + 1, of: 4 };
    EventKind::DecisionMade {
        operation: None,
        attempt,
        decision: Decision { action, why: "x".into() },
        reclassified,
    }
}

fn surfaced(attempt: u32) -> EventKind {
    let decision = Decision { action: Action::Surface, why: "x".into() };
    EventKind::DecisionMade {
        operation: None,
        attempt,
        decision,
        reclassified: Some(Reason::NetworkPermanent),
    }
}

fn recovered(attempt: u32, success: bool) -> EventKind {
    EventKind::RecoveryAttempted { operation: None, strategy: "retry".into(), success, attempt, detail: None }
}

fn waited(waited_ms: u64) -> EventKind {
    EventKind::GuardWaited { provider: "openai".parse().unwrap(), waited_ms }
}

/// The same, from the events themselves: one question after the other, each in the plainest way.
fn naive(events: &[Event], since: i64) -> Stats {
    let mut runs: Vec<(String, Vec<&Event>)> = Vec::new();
    for event in events {
        match runs.iter_mut().find(|(_, of)| of[0].run == event.run) {
            Some((_, of)) => of.push(event),
            None => runs.push((String::new(), vec![event])),
        }
    }
    for (label, of) in &mut runs {
        of.sort_by_key(|event| event.seq);
        let operation = of.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunStarted { operation, .. } => Some(operation.raw().to_owned()),
            _ => None,
        });
        *label = operation_label(&operation.unwrap_or_default());
    }
    let mut reasons: BTreeMap<&str, (Reason, Counts)> = BTreeMap::new();
    let mut operations: BTreeMap<String, Counts> = BTreeMap::new();
    let mut days: BTreeMap<i64, Counts> = BTreeMap::new();
    let mut stats = Stats::default();
    for (label, of) in &runs {
        for (place, event) in of.iter().enumerate().filter(|(_, event)| event.at.as_millis() >= since) {
            let before = of[..place].iter().rev().find_map(|event| match &event.kind {
                EventKind::ErrorClassified { fault, .. } => Some(fault.reason),
                _ => None,
            });
            let mut counts = Counts::default();
            let mut reason = None;
            match &event.kind {
                EventKind::AttemptFinished { success: false, .. } if is_stopped(&of[place + 1..]) => {}
                EventKind::ErrorClassified { fault, .. } if fault.reason == Reason::Interrupted => {}
                EventKind::AttemptFinished { success, duration_ms, .. } => {
                    counts.attempts = 1;
                    counts.attempts_ms = *duration_ms;
                    counts.succeeded = u64::from(*success);
                    counts.failed_ms = if *success { 0 } else { *duration_ms };
                }
                EventKind::AttemptLost { .. } => (counts.attempts, counts.lost) = (1, 1),
                EventKind::ErrorClassified { fault, .. } => {
                    counts.errors = 1;
                    reason = Some(fault.reason);
                    let own = of[..place]
                        .iter()
                        .rev()
                        .take_while(|event| !matches!(event.kind, EventKind::ErrorClassified { .. }))
                        .find_map(|event| match &event.kind {
                            EventKind::AttemptFinished { success, duration_ms, .. } => {
                                Some(if *success { 0 } else { *duration_ms })
                            }
                            EventKind::AttemptLost { .. } => Some(0),
                            _ => None,
                        });
                    let row = reasons.entry(fault.reason.code()).or_insert((fault.reason, Counts::default()));
                    row.1.failed_ms += own.unwrap_or(0);
                }
                EventKind::DecisionMade { decision, .. } => {
                    let ended = of[place..].iter().any(|event| {
                        matches!(
                            event.kind,
                            EventKind::AttemptFinished { .. } | EventKind::AttemptLost { .. }
                        )
                    });
                    if let (Action::Retry { after, .. }, true) = (&decision.action, ended) {
                        counts.waited_ms = (after.as_secs_f64() * 1000.0).round() as u64;
                        reason = before;
                    }
                }
                EventKind::RecoveryAttempted { success, .. } => {
                    (counts.retried, counts.cured) = (1, u64::from(*success));
                    reason = before;
                }
                EventKind::GuardWaited { waited_ms, .. } => counts.guard_ms = *waited_ms,
                _ => {}
            }
            if counts == Counts::default() {
                continue;
            }
            stats.total.add(&counts);
            operations.entry(label.clone()).or_default().add(&counts);
            days.entry(event.at.as_millis().div_euclid(DAY)).or_default().add(&counts);
            if let Some(reason) = reason {
                reasons.entry(reason.code()).or_insert((reason, Counts::default())).1.add(&counts);
            }
        }
    }
    stats.reasons = reasons.into_values().collect();
    stats.reasons.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.errors));
    stats.operations = operations.into_iter().map(|(label, counts)| (label.into(), counts)).collect();
    stats.days = days.into_iter().map(|(day, c)| (Timestamp::from_millis(day * DAY), c)).collect();
    stats
}

/// Whether the error of an attempt that has just failed says that somebody stopped it.
fn is_stopped(after: &[&Event]) -> bool {
    let end_or_error = after.iter().find_map(|event| match &event.kind {
        EventKind::AttemptFinished { .. } | EventKind::AttemptLost { .. } => Some(false),
        EventKind::ErrorClassified { fault, .. } => Some(fault.reason == Reason::Interrupted),
        _ => None,
    });
    end_or_error.unwrap_or(false)
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let reason = prop::sample::select(vec![
        Reason::NetworkTransient,
        Reason::Unknown,
        Reason::TestFailure,
        Reason::RateLimited,
        Reason::Interrupted,
    ]);
    prop_oneof![
        (1..4u32, 0..100_000u64).prop_map(|(n, ms)| failed(n, ms, "out")),
        (1..4u32).prop_map(|n| finished("npm test", n)),
        (1..4u32).prop_map(|n| attempt("npm test", n)),
        (1..4u32).prop_map(|attempt| EventKind::AttemptLost {
            operation: "x".into(),
            attempt,
            why: "gone".into(),
            delivery: None,
        }),
        (1..4u32, reason.clone()).prop_map(|(n, reason)| classified("npm test", n, reason)),
        (1..4u32, 0..100_000_000u64, prop::option::of(reason)).prop_map(|(n, us, reason)| decided(
            n,
            Duration::from_micros(us),
            reason
        )),
        (1..4u32).prop_map(surfaced),
        (1..4u32, any::<bool>()).prop_map(|(n, ok)| recovered(n, ok)),
        (0..100_000u64).prop_map(waited),
        Just(EventKind::RunHalted { reason: Reason::AuthError, resume: "x".into() }),
        Just(EventKind::RunResumed {}),
    ]
}

const OPERATIONS: [&str; 4] = ["npm test", "/bin/npm test --all", "cargo build", "sh -c 'x'"];

fn ran(journal: &Journal) -> Vec<Event> {
    let all = EventFilter { limit: u32::MAX, ..EventFilter::default() };
    journal.events(&all).unwrap().into_iter().map(|(_, event)| event).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn it_is_what_the_events_say(
        // Runs in turn, each step a few events; the clock goes forth and back.
        steps in prop::collection::vec((0..5usize, -DAY..2 * DAY, prop::collection::vec(any_event(), 1..5)), 0..40),
        since in prop::option::of(-5 * DAY..20 * DAY),
    ) {
        let place = Place::new();
        let journal = place.journal();
        let runs: Vec<_> = (0..5_u64)
            .map(|n| journal.begin(header(n << 40), vec![started(OPERATIONS[n as usize % 4])]).unwrap())
            .collect();
        let mut now = START;
        for (run, passed, kinds) in steps {
            now += passed;
            place.set(now);
            runs[run].append(kinds).unwrap();
        }
        let since = since.map(|ago| START + ago);
        let filter = StatsFilter { since: since.map(Timestamp::from_millis), ..StatsFilter::default() };
        let mut stats = journal.stats(&filter).unwrap();
        let mut want = naive(&ran(&journal), since.unwrap_or(i64::MIN));
        let by_name = |list: &mut Vec<(backstop_core::SafeText, Counts)>| list.sort_by(|a, b| a.0.cmp(&b.0));
        by_name(&mut stats.operations);
        by_name(&mut want.operations);
        want.runs_open = u64::from(since.is_none_or(|since| since <= START)) * 5;
        prop_assert_eq!(stats, want);
    }
}

#[test]
fn runs_are_counted_by_their_outcome() {
    let place = Place::new();
    let journal = place.journal();
    for (n, outcome) in [Outcome::Done, Outcome::Failed, Outcome::Done].into_iter().enumerate() {
        let run = journal.begin(header((n as u64 + 1) << 40), vec![started("npm ci")]).unwrap();
        run.append(vec![ended(outcome)]).unwrap();
    }
    let mut clear = header(9 << 40);
    clear.surface = "guard".into();
    journal.begin(clear, vec![started("guard clear"), ended(Outcome::Done)]).unwrap();
    place.pass_days(3);
    journal.begin(header(10 << 40), vec![started("make")]).unwrap();
    let filter = StatsFilter { surfaces_left_out: vec!["guard".into()], ..StatsFilter::default() };
    let stats = journal.stats(&filter).unwrap();
    assert_eq!(stats.runs, [(Outcome::Done, 2), (Outcome::Failed, 1)]);
    assert_eq!(stats.runs_open, 1);
    let late = StatsFilter { since: Some(Timestamp::from_millis(START + DAY)), ..StatsFilter::default() };
    let stats = journal.stats(&late).unwrap();
    assert_eq!((stats.runs.as_slice(), stats.runs_open), ([].as_slice(), 1));
    let npm = StatsFilter { operation_contains: Some("NPM".into()), ..StatsFilter::default() };
    assert_eq!(journal.stats(&npm).unwrap().runs_open, 0);
}

#[test]
fn a_wait_that_was_broken_off_is_not_counted() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("npm ci"), attempt("npm ci", 1)]).unwrap();
    run.append(vec![failed(1, 300, "x"), classified("npm ci", 1, Reason::NetworkTransient)]).unwrap();
    run.append(vec![decided(1, Duration::from_millis(1100), None), attempt("npm ci", 2)]).unwrap();
    run.append(vec![failed(2, 200, "x"), recovered(2, false)]).unwrap();
    run.append(vec![classified("npm ci", 2, Reason::RateLimited), decided(2, Duration::from_secs(60), None)])
        .unwrap();
    run.append(vec![ended(Outcome::Interrupted)]).unwrap();
    let stats = journal.stats(&StatsFilter::default()).unwrap();
    assert_eq!((stats.total.waited_ms, stats.total.failed_ms), (1100, 500));
    let network = stats.reasons.iter().find(|(reason, _)| *reason == Reason::NetworkTransient).unwrap().1;
    assert_eq!((network.waited_ms, network.failed_ms, network.retried, network.cured), (1100, 300, 1, 0));
    let limited = stats.reasons.iter().find(|(reason, _)| *reason == Reason::RateLimited).unwrap().1;
    assert_eq!((limited.waited_ms, limited.failed_ms, limited.retried), (0, 200, 0));
}

fn unknown(n: u64, journal: &Journal, cause: Option<&str>, output: &str) {
    let mut fault = Fault::new(Reason::Unknown);
    fault.cause = cause.map(Into::into);
    let error =
        EventKind::ErrorClassified { operation: "npm test".into(), attempt: 1, fault: Box::new(fault) };
    journal.begin(header(n << 40), vec![started("npm test"), failed(1, 9, output), error]).unwrap();
}

#[test]
fn what_nobody_knows_is_grouped_by_what_it_says() -> Result<(), StoreError> {
    let place = Place::new();
    let journal = place.journal();
    unknown(1, &journal, Some("worker-17 died after 320ms"), "");
    unknown(2, &journal, None, "first\n\x1b[31mworker-3 died after 9ms\x1b[0m\n\n");
    place.pass_days(2);
    unknown(3, &journal, Some("flux capacitor offline"), "");
    unknown(4, &journal, Some("worker-8 died after 1ms"), "");
    unknown(5, &journal, None, "");
    let drift = journal.drift(Timestamp::from_millis(0))?;
    let shape = |group: &UnknownGroup| (group.signature.clone(), group.count, group.example.raw().to_owned());
    let groups: Vec<_> = drift.groups.iter().map(shape).collect();
    assert_eq!(groups[0], ("worker-<n> died after <n>ms".into(), 3, "worker-8 died after 1ms".into()));
    assert_eq!(drift.groups[0].first_at.as_millis(), START);
    assert_eq!(drift.groups[0].last_at.as_millis(), START + 2 * DAY);
    assert_eq!(
        groups[1..],
        [("".into(), 1, "".into()), ("flux capacitor offline".into(), 1, "flux capacitor offline".into())]
    );
    assert_eq!((drift.recent.unknown, drift.before.unknown, drift.is_spike()), (3, 2, false));
    // Everything before is out of sight.
    let drift = journal.drift(Timestamp::from_millis(START + DAY))?;
    assert_eq!((drift.groups.len(), drift.before.errors), (3, 0));
    Ok(())
}

/// A million events as `exec` writes them: most runs succeed, some fail and recover, some fail for
/// good.
#[test]
#[ignore = "a measurement"]
fn a_million_events_are_added_up() {
    let place = Place::new();
    let journal = place.journal();
    let output =
        "npm error code ECONNRESET\nnpm error network request to https://registry failed\n".repeat(8);
    let reasons: Vec<Reason> = backstop_core::TAXONOMY.iter().map(|row| row.reason).take(12).collect();
    let operations = ["npm test", "npm ci", "cargo build", "cargo test", "pytest -q", "make all", "git push"];
    let (mut count, mut n) = (0_u64, 0_u64);
    let begin = Instant::now();
    while count < 1_000_000 {
        n += 1;
        place.set(START + (n as i64) * 15_000);
        let operation = operations[n as usize % operations.len()];
        let mut kinds = vec![started(operation), attempt(operation, 1)];
        if n % 4 == 0 {
            let mut fault = Fault::new(reasons[n as usize % reasons.len()]);
            fault.cause = Some("npm error code ECONNRESET".into());
            let error = EventKind::ErrorClassified {
                operation: operation.into(),
                attempt: 1,
                fault: Box::new(fault),
            };
            kinds.extend([failed(1, 900, &output), error, decided(1, Duration::from_millis(1100), None)]);
            kinds.extend([attempt(operation, 2), finished(operation, 2), recovered(2, true)]);
        } else {
            kinds.push(finished(operation, 1));
        }
        kinds.push(ended(Outcome::Done));
        count += kinds.len() as u64;
        journal.begin(header(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)), kinds).unwrap();
    }
    let bytes = std::fs::metadata(journal.file()).unwrap().len();
    println!("{count} events of {n} runs, {} MB, written in {:?}", bytes >> 20, begin.elapsed());
    drop(journal);
    for _ in 0..5 {
        let journal = place.journal();
        let begin = Instant::now();
        let stats = journal.stats(&StatsFilter::default()).unwrap();
        println!(
            "stats: {:?} ({} attempts, {} days)",
            begin.elapsed(),
            stats.total.attempts,
            stats.days.len()
        );
        let begin = Instant::now();
        let since = Timestamp::from_millis(START + (n as i64) * 15_000 - 7 * DAY);
        journal.stats(&StatsFilter { since: Some(since), ..StatsFilter::default() }).unwrap();
        println!("stats of 7 days: {:?}", begin.elapsed());
        let begin = Instant::now();
        let drift = journal.drift(Timestamp::from_millis(0)).unwrap();
        println!("drift: {:?} ({} errors)", begin.elapsed(), drift.recent.errors + drift.before.errors);
    }
    let labels: BTreeSet<String> = operations.iter().map(|op| operation_label(op)).collect();
    let stats = place.journal().stats(&StatsFilter::default()).unwrap();
    assert_eq!(stats.operations.len(), labels.len());
}
