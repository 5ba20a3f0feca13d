//! A Backstop that was killed leaves runs, attempts and processes behind: they are found, once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{EventKind, Outcome, Reason};
use backstop_store::{Child, RunJournal, RunState};
use common::{GONE, HERE, Place, attempt, classified, ended, finished, header, here_is_alive, started};

fn child(attempt: u32) -> Child {
    Child { operation: None, attempt, pid: 100 + attempt, start: 7, group: 100 }
}

#[test]
fn a_lost_run_is_found_with_its_children_and_closed_once() {
    let place = Place::new();
    let journal = place.journal();
    assert_eq!(journal.lost_runs(&|_| false).unwrap(), []);
    let mut dead = header(1);
    dead.process = GONE;
    let run = journal.begin(dead, vec![started("make"), attempt("make", 1)]).unwrap();
    run.child_started(child(1)).unwrap();
    run.append(vec![finished("make", 1), classified("make", 1, Reason::Timeout), attempt("make", 2)])
        .unwrap();
    run.child_started(child(2)).unwrap();
    let alive = journal.begin(header(2), vec![started("other")]).unwrap();

    let lost = journal.lost_runs(&here_is_alive).unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].run, lost[0].attempt, lost[0].process), (run.id(), Some(2), GONE));
    assert_eq!(lost[0].children, [child(2)]);
    assert_eq!(lost[0].operation, Some("make".into()));

    assert!(journal.close_lost(&lost[0]).unwrap());
    assert!(!journal.close_lost(&lost[0]).unwrap());
    assert_eq!(journal.lost_runs(&here_is_alive).unwrap(), []);
    let events = journal.load(run.id()).unwrap();
    assert!(matches!(&events[5].kind, EventKind::AttemptLost { attempt: 2, .. }));
    assert!(matches!(&events[6].kind, EventKind::RunEnded { outcome: Outcome::Lost, attempts: 2, .. }));
    assert_eq!(events.len(), 7);
    assert_eq!(journal.run(alive.id()).unwrap().unwrap().state, RunState::Open);
}

#[test]
fn a_run_that_went_on_is_not_closed() {
    let place = Place::new();
    let journal = place.journal();
    let mut dead = header(1);
    dead.process = GONE;
    let run = journal.begin(dead, vec![started("plan")]).unwrap().id();
    let lost = journal.lost_runs(&here_is_alive).unwrap();
    let again = RunJournal::resume(&journal, run, HERE).unwrap();
    again.append(vec![EventKind::RunResumed {}]).unwrap();
    assert!(!journal.close_lost(&lost[0]).unwrap());
    assert_eq!(journal.lost_runs(&here_is_alive).unwrap(), []);
    assert_eq!(journal.run(run).unwrap().unwrap().state, RunState::Open);
}

#[test]
fn who_ended_leaves_no_children() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("a"), attempt("a", 1)]).unwrap();
    run.child_started(child(1)).unwrap();
    run.child_started(Child { pid: 7, ..child(2) }).unwrap();
    run.append(vec![finished("a", 1)]).unwrap();
    assert_eq!(journal.lost_runs(&|_| false).unwrap()[0].children, [Child { pid: 7, ..child(2) }]);
    run.append(vec![ended(Outcome::Done)]).unwrap();
    assert_eq!(journal.lost_runs(&|_| false).unwrap(), []);
    // A halted run is nobody's loss: it waits to be resumed.
    let run = journal.begin(header(2), vec![started("b")]).unwrap();
    run.append(vec![EventKind::RunHalted { reason: Reason::AuthError, resume: "x".into() }]).unwrap();
    assert_eq!(journal.lost_runs(&|_| false).unwrap(), []);
}
