//! A secret that was given to the store is in none of its files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{EventKind, Fault, MASK, Reason, SafeText};
use backstop_store::{DeferredWork, RunHeader};
use common::{Place, header, started};
use std::path::Path;

const KNOWN: &str = "hunter2-canary-value";
const SHAPED: &str = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ");

fn files_with(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).unwrap().windows(needle.len()).any(|bytes| bytes == needle.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn no_secret_reaches_the_disk() {
    let place = Place::knowing(&[KNOWN]);
    let journal = place.journal();
    let both = format!("a {KNOWN} b {SHAPED} c");
    let first =
        RunHeader { session: Some(both.clone().into()), caller: Some(both.clone().into()), ..header(1) };
    let run = journal.begin(first, vec![started(&both)]).unwrap();
    let mut fault = Fault::new(Reason::AuthError);
    fault.cause = Some(both.clone().into());
    fault.facts.failed_tests = vec![both.clone().into()];
    let stored = run
        .append(vec![
            EventKind::AttemptFinished {
                operation: both.clone().into(),
                attempt: 1,
                success: false,
                duration_ms: 1,
                exit: Some(1),
                signal: None,
                output: Some(format!("line\n{both}\nDB_PASSWORD={KNOWN}\n").into()),
                delivery: None,
            },
            EventKind::AttemptLost {
                operation: "x".into(),
                attempt: 1,
                why: both.clone().into(),
                delivery: None,
            },
            EventKind::ErrorClassified { operation: "x".into(), attempt: 1, fault: Box::new(fault) },
            EventKind::RunHalted { reason: Reason::AuthError, resume: both.clone() },
        ])
        .unwrap();
    journal
        .defer(&DeferredWork {
            run: run.id(),
            argv: vec!["x".into(), both.clone(), format!("--token={KNOWN}")],
            folder: both.clone(),
            reason: Reason::ServiceDown,
            until: both.clone().into(),
            whole: true,
            is_task: false,
            address: None,
        })
        .unwrap();

    for secret in [KNOWN, SHAPED] {
        assert_eq!(files_with(place.folder.root(), secret), Vec::<String>::new());
    }
    // The masks are there: what was looked through is what was written.
    assert!(!files_with(place.folder.root(), MASK).is_empty());
    assert_eq!(journal.load(run.id()).unwrap()[1..], stored[..]);
    let EventKind::AttemptLost { why, .. } = &stored[1].kind else { panic!("another kind") };
    assert_eq!(why.raw(), format!("a {MASK} b {MASK} c"));
    let summary = journal.run(run.id()).unwrap().unwrap();
    assert_eq!(summary.operation.as_ref().map(SafeText::raw), Some(why.raw()));
}
