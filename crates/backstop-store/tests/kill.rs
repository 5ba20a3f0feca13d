//! kill -9 at any moment: what was acknowledged is there, and what is there is whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{EventKind, Outcome};
use backstop_store::{CommitPoint, Journal, RunFilter, RunState};
use common::{Place, attempt, child, child_arguments, ended, finished, header, started};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the writer is killed.
const KILLS: usize = 36;

#[test]
fn what_was_acknowledged_survives() {
    let place = Place::new();
    let mut survived = 0;
    for n in 0..KILLS {
        let mut writer = child("a_writer", place.folder.root(), &place.project, &n.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        let mut take = |line: Option<std::io::Result<String>>| match line {
            Some(Ok(line)) => {
                acknowledged.extend(line.strip_prefix("ack ").map(str::to_owned));
                true
            }
            _ => false,
        };
        // After a different number of lines each time: from before the run exists to well within
        // it.
        for _ in 0..(n * 7) % 60 {
            take(lines.next());
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        while take(lines.next()) {}

        let journal = place.journal();
        journal.check().unwrap();
        survived += acknowledged.len();
        let Some(last) = acknowledged.last() else { continue };
        let (run, seq) = last.split_once('.').unwrap();
        let run = run.parse().unwrap();
        let events = journal.load(run).unwrap();
        let seq: usize = seq.parse().unwrap();
        assert!(events.len() >= seq, "{seq} acknowledged, {} there", events.len());
        assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
        // Pairs are written together: there is no half of one.
        assert_eq!(events.len() % 2, 1);
        assert_eq!(journal.run(run).unwrap().unwrap().events, events.len() as u64);
        let lost = journal.lost_runs(&|_| false).unwrap();
        for lost in &lost {
            assert!(journal.close_lost(lost).unwrap());
        }
    }
    assert!(survived > KILLS, "only {survived} were acknowledged");
}

#[test]
#[ignore = "started by the test above, and killed by it"]
#[allow(clippy::print_stdout, reason = "that is how it acknowledges")]
fn a_writer() {
    let Some((folder, project, word)) = child_arguments() else { return };
    let journal = Journal::open(&folder, &project).unwrap();
    let run = journal.begin(header(word.parse::<u64>().unwrap() << 8), vec![started("loop")]).unwrap();
    let mut out = std::io::stdout();
    for n in 1.. {
        let stored = run.append(vec![attempt("loop", n), finished("loop", n)]).unwrap();
        if writeln!(out, "ack {}", stored[1].id).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// The process ends at every point around every commit of a run; the next one finds the journal as
/// if the commit had happened whole or not at all.
#[test]
fn every_commit_point() {
    let mut reached = 0;
    for point in 0_usize.. {
        let place = Place::new();
        drop(place.journal());
        let status = child("a_run_that_ends_at", place.folder.root(), &place.project, &point.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let journal = place.journal();
        journal.check().unwrap();
        let runs = journal.runs(&RunFilter::default()).unwrap();
        // Before the first commit there is nothing, after it the run; each commit adds what it has,
        // or nothing.
        let committed = point.div_ceil(2);
        let events = runs.first().map_or(0, |run| journal.load(run.id).unwrap().len());
        if status.success() {
            assert_eq!((runs[0].state, events), (RunState::Ended, 4));
            break;
        }
        reached += 1;
        assert_eq!(events, [0, 2, 2, 3, 4][committed], "point {point}");
        assert_eq!(journal.lost_runs(&|_| false).unwrap().len(), usize::from((1..4).contains(&committed)));
    }
    assert_eq!(reached, 8);
}

#[test]
#[ignore = "started by the test above"]
fn a_run_that_ends_at() {
    let Some((folder, project, word)) = child_arguments() else { return };
    let point: u32 = word.parse().unwrap();
    let seen = AtomicU32::new(0);
    let last = std::sync::Mutex::new(CommitPoint::After);
    let journal = Journal::open(&folder, &project).unwrap().on_commit(Arc::new(move |at| {
        let mut last = last.lock().unwrap();
        assert_ne!(*last, at, "before and after take turns");
        *last = at;
        if seen.fetch_add(1, Ordering::SeqCst) == point {
            std::process::abort();
        }
    }));
    let run = journal.begin(header(1), vec![started("x"), attempt("x", 1)]).unwrap();
    run.child_started(backstop_store::Child { operation: None, attempt: 1, pid: 1, start: 1, group: 1 })
        .unwrap();
    run.append(vec![finished("x", 1)]).unwrap();
    let end: Vec<EventKind> = vec![ended(Outcome::Done)];
    run.append(end).unwrap();
}
