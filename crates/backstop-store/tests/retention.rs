//! What is old or too much goes, what somebody may need stays, and a clock that jumps costs
//! nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{EventKind, Outcome, Reason, RunId};
use backstop_store::{DeferredWork, EventFilter, Journal, ProcessId, Retention, RunFilter};
use common::{GONE, Place, ended, finished, header, here_is_alive, started};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn retention(runs_min: u32) -> Retention {
    Retention { runs_min, ..Retention::default() }
}

fn done(journal: &Journal, random: u64) -> RunId {
    let run = journal.begin(header(random << 8), vec![started("make")]).unwrap();
    run.append(vec![finished("make", 1), ended(Outcome::Done)]).unwrap();
    run.id()
}

fn ids(journal: &Journal) -> Vec<RunId> {
    let runs = journal.runs(&RunFilter { limit: 10_000, ..RunFilter::default() }).unwrap();
    runs.iter().rev().map(|run| run.id).collect()
}

#[test]
fn old_runs_go_and_the_newest_stay() {
    let place = Place::new();
    let journal = place.journal();
    let old: Vec<RunId> = (0..10).map(|n| done(&journal, n)).collect();
    place.pass_days(31);
    let new = done(&journal, 99);
    let cleaned = journal.clean(&retention(4), &here_is_alive).unwrap();
    assert_eq!((cleaned.runs, cleaned.events), (7, 21));
    assert_eq!(ids(&journal), [old[7], old[8], old[9], new]);
    let left = journal.events(&EventFilter::default()).unwrap();
    assert_eq!(left.len(), 12);
    // Positions go on: whoever follows misses nothing.
    let last = left.last().unwrap().0;
    let next = done(&journal, 100);
    let after = EventFilter { after: Some(last), ..EventFilter::default() };
    assert!(journal.events(&after).unwrap().iter().all(|(_, event)| event.run == next));
    journal.check().unwrap();
}

#[test]
fn what_somebody_may_need_stays() {
    let place = Place::new();
    let journal = place.journal();
    let deferred = done(&journal, 1);
    let open = journal.begin(header(2 << 8), vec![started("open")]).unwrap().id();
    let mut dead = header(3 << 8);
    dead.process = GONE;
    journal.begin(dead, vec![started("lost")]).unwrap();
    let reason = Reason::ServiceDown;
    let work = DeferredWork {
        run: deferred,
        argv: vec!["x".into()],
        folder: "/".into(),
        reason,
        until: "x".into(),
        whole: true,
        is_task: false,
        address: None,
    };
    let id = journal.defer(&work).unwrap().id;
    place.pass_days(40);
    let halted = journal.begin(header(4 << 8), vec![started("plan")]).unwrap();
    halted.append(vec![EventKind::RunHalted { reason, resume: "x".into() }]).unwrap();
    let last = done(&journal, 5);
    // Nothing fits, nothing is young enough, and still these are needed.
    let nothing = Retention { keep: 30 * DAY, max_bytes: 0, runs_min: 0 };
    journal.clean(&nothing, &here_is_alive).unwrap();
    assert_eq!(ids(&journal), [deferred, open, halted.id(), last]);
    assert!(journal.drop_deferred(id).unwrap());
    place.pass_days(40);
    journal.clean(&nothing, &|_: &ProcessId| false).unwrap();
    assert_eq!(ids(&journal), [last]);
    assert_eq!(journal.load(last).unwrap().len(), 3);
}

#[test]
fn what_is_too_much_goes_oldest_first_and_the_file_shrinks() {
    let place = Place::new();
    let journal = place.journal();
    let runs: Vec<RunId> = (0..200)
        .map(|n| {
            let run = journal.begin(header(n << 8), vec![started(&"x".repeat(10_000))]).unwrap();
            run.append(vec![ended(Outcome::Done)]).unwrap();
            run.id()
        })
        .collect();
    let limit = Retention { max_bytes: 2_000_000, ..Retention::default() };
    let cleaned = journal.clean(&limit, &here_is_alive).unwrap();
    assert!(cleaned.runs > 0 && cleaned.runs < 200, "{cleaned:?}");
    assert!(cleaned.bytes_after < cleaned.bytes_before, "{cleaned:?}");
    assert!(cleaned.bytes_after <= 2_000_000, "{cleaned:?}");
    let left = ids(&journal);
    assert_eq!(left[..], runs[runs.len() - left.len()..]);
    assert_eq!(journal.clean(&limit, &here_is_alive).unwrap().runs, 0);
    journal.check().unwrap();
}

#[test]
fn cleaning_is_due_once_a_day_whatever_the_clock_does() {
    let place = Place::new();
    let journal = place.journal();
    let due = || journal.clean_if_due(&retention(1), &here_is_alive).unwrap();
    for n in 0..5 {
        done(&journal, n);
    }
    assert_eq!(due(), None);
    place.pass_days(1);
    assert!(due().is_some());
    assert_eq!(due(), None);
    // Back by five days: due once, then not again today.
    place.pass_days(-5);
    assert!(due().is_some());
    assert_eq!(due(), None);
    // A jump by ten years makes everything look old. It is given a day, in which the jump may be
    // seen.
    place.pass_days(3650);
    assert_eq!(due().unwrap().runs, 0);
    place.pass_days(-3650);
    assert_eq!(due().unwrap().runs, 0);
    assert_eq!(ids(&journal).len(), 5);
    // Time that really passes does its work.
    for _ in 0..40 {
        place.pass_days(1);
        due().unwrap();
    }
    assert_eq!(ids(&journal).len(), 1);
}
