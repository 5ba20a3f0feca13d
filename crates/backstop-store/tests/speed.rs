//! How fast the store is. Times are printed and not asserted:
//! `cargo test --release -p backstop-store --test speed -- --ignored --nocapture --test-threads 1`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod common;

use backstop_core::Outcome;
use backstop_store::{Child, Journal};
use common::{Place, attempt, ended, finished, header, started};
use std::time::{Duration, Instant};

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    format!("median {:?}, p90 {:?}, max {:?}", at(50), at(90), at(100))
}

/// What `backstop exec -- true` does, from opening to closing, one process after the other.
#[test]
#[ignore = "a measurement"]
fn whole_runs() {
    let place = Place::new();
    drop(place.journal());
    let mut times = Vec::new();
    let mut parts = [const { Vec::new() }; 5];
    for n in 0..2000_u64 {
        let begin = Instant::now();
        let mut last = begin;
        let mut part = |n: usize| {
            let now = Instant::now();
            parts[n].push(now - last);
            last = now;
        };
        let journal = Journal::open(&place.folder, &place.project).unwrap();
        part(0);
        let first = vec![started("true"), attempt("true", 1)];
        let run = journal.begin(header(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)), first).unwrap();
        part(1);
        run.child_started(Child { operation: None, attempt: 1, pid: 1, start: 2, group: 1 }).unwrap();
        part(2);
        run.append(vec![finished("true", 1)]).unwrap();
        run.append(vec![ended(Outcome::Done)]).unwrap();
        part(3);
        drop((run, journal));
        part(4);
        times.push(begin.elapsed());
    }
    println!("open + begin + child + 2 appends + drop: {}", summary(times));
    for (name, times) in ["open", "begin", "child", "2 appends", "drop"].iter().zip(parts) {
        println!("  {name}: {}", summary(times));
    }
}

/// Printed by every test run: what is slow here makes every resume slow.
#[test]
fn a_hundred_thousand_events_are_loaded() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("long")]).unwrap();
    let begin = Instant::now();
    for _ in 0..100 {
        run.append((0..1000).map(|n| finished("npm test", n)).collect()).unwrap();
    }
    let written = begin.elapsed();
    let begin = Instant::now();
    let events = journal.load(run.id()).unwrap();
    println!("100,000 events: written in {written:?}, loaded in {:?}", begin.elapsed());
    assert_eq!(events.len(), 100_001);
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
}
