//! Many at once: nothing is lost, and nobody is turned away.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{Outcome, RunId};
use backstop_store::{EventFilter, Journal, RunFilter, RunJournal, RunState, StoreError};
use common::{HERE, Place, attempt, child, child_arguments, ended, header, started};
use std::process::Stdio;

const WRITERS: u64 = 16;
const EVENTS: u32 = 25;

/// One writer: a run of its own, and a share in a run that all write to.
fn write(journal: &Journal, shared: RunId, writer: u64) {
    let run = journal.begin(header(writer), vec![started("own")]).unwrap();
    for n in 1..=EVENTS {
        run.append(vec![attempt("own", n)]).unwrap();
        let mut pen = RunJournal::resume(journal, shared, HERE).unwrap();
        // Whoever was second looks again: that is what a conflict is for.
        while let Err(error) = pen.append(vec![attempt(&format!("w{writer}"), n)]) {
            assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
            pen = RunJournal::resume(journal, shared, HERE).unwrap();
        }
    }
    run.append(vec![ended(Outcome::Done)]).unwrap();
}

fn check(place: &Place, shared: RunId) {
    let journal = place.journal();
    let runs = journal.runs(&RunFilter { limit: 1000, ..RunFilter::default() }).unwrap();
    assert_eq!(runs.len() as u64, WRITERS + 1);
    for run in runs.iter().filter(|run| run.id != shared) {
        let events = journal.load(run.id).unwrap();
        assert_eq!(events.len() as u32, EVENTS + 2);
        assert_eq!((run.state, run.events), (RunState::Ended, u64::from(EVENTS) + 2));
    }
    let events = journal.load(shared).unwrap();
    assert_eq!(events.len() as u64, WRITERS * u64::from(EVENTS) + 1);
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
    let all = journal.events(&EventFilter { limit: 100_000, ..EventFilter::default() }).unwrap();
    assert_eq!(all.len() as u64, WRITERS * (u64::from(EVENTS) + 2) + WRITERS * u64::from(EVENTS) + 1);
    journal.check().unwrap();
}

#[test]
fn sixteen_threads_with_connections_of_their_own() {
    let place = Place::new();
    let shared = place.journal().begin(header(0xffff), vec![started("shared")]).unwrap().id();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let place = &place;
            scope.spawn(move || write(&place.journal(), shared, writer));
        }
    });
    check(&place, shared);
}

/// Runs all writers as processes of their own. They share the run `shared`; `-` for none.
fn run_writers(place: &Place, shared: &str) {
    let children: Vec<_> = (0..WRITERS)
        .map(|writer| {
            child("one_of_sixteen", place.folder.root(), &place.project, &format!("{shared} {writer}"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn sixteen_processes() {
    let place = Place::new();
    let shared = place.journal().begin(header(0xffff), vec![started("shared")]).unwrap().id();
    run_writers(&place, &shared.to_string());
    check(&place, shared);
}

/// All make the database at once: one does, the others find it whole.
#[test]
fn sixteen_processes_meet_a_missing_database() {
    let place = Place::new();
    run_writers(&place, "-");
    assert_eq!(place.journal().runs(&RunFilter::default()).unwrap().len() as u64, WRITERS);
    place.journal().check().unwrap();
}

#[test]
#[ignore = "started by the tests above"]
fn one_of_sixteen() {
    let Some((folder, project, word)) = child_arguments() else { return };
    let (shared, writer) = word.split_once(' ').unwrap();
    let writer = writer.parse().unwrap();
    let journal = Journal::open(&folder, &project).unwrap();
    match shared.parse() {
        Ok(shared) => write(&journal, shared, writer),
        Err(_) => drop(journal.begin(header(writer << 8), vec![started("first")]).unwrap()),
    }
}
