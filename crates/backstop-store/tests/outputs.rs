//! The output of failed attempts: masked, bounded, and removed with its run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{Outcome, OutputLog, OutputStream};
use backstop_store::Retention;
use common::{Place, ended, header, here_is_alive, started};

fn log(text: &str) -> OutputLog {
    let mut log = OutputLog::default();
    log.push(OutputStream::Stderr, text, 0);
    log
}

#[test]
fn a_secret_is_masked_and_a_log_goes_with_its_run() {
    let place = Place::knowing(&["hunter2-canary-value"]);
    let journal = place.journal();
    let run = journal.begin(header(1 << 8), vec![started("make")]).unwrap();
    run.keep_output(1, &log("use hunter2-canary-value\n")).unwrap();
    run.keep_output(2, &log("two\n")).unwrap();
    run.append(vec![ended(Outcome::Failed)]).unwrap();
    let outputs = journal.outputs(run.id()).unwrap();
    assert_eq!(outputs, [(1, log("use [redacted]\n")), (2, log("two\n"))]);
    place.pass_days(31);
    let newer = journal.begin(header(2 << 8), vec![started("make")]).unwrap();
    newer.append(vec![ended(Outcome::Done)]).unwrap();
    let retention = Retention { runs_min: 1, ..Retention::default() };
    journal.clean(&retention, &here_is_alive).unwrap();
    assert!(journal.outputs(run.id()).unwrap().is_empty());
}

#[test]
fn the_oldest_logs_go_where_there_are_too_many() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1 << 8), vec![started("make")]).unwrap();
    // 2 MiB each: 64 of them are all that a project keeps.
    let big = log(&"x".repeat(2 << 20));
    for attempt in 1..=70 {
        run.keep_output(attempt, &big).unwrap();
    }
    let kept: Vec<u32> = journal.outputs(run.id()).unwrap().iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(kept, (8..=70).collect::<Vec<u32>>());
}
