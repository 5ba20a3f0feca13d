//! Deferred work is kept once, counted, and never with a secret in it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{MASK, Reason};
use backstop_store::{DeferredId, DeferredWork};
use common::{Place, START, header};

fn work(argv: &[&str], folder: &str) -> DeferredWork {
    DeferredWork {
        run: "r-0001".parse().unwrap(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        folder: folder.to_owned(),
        reason: Reason::ServiceDown,
        until: "the database answers".into(),
        whole: true,
        is_task: false,
        address: None,
    }
}

#[test]
fn the_same_work_is_one_row() {
    let place = Place::new();
    let journal = place.journal();
    let first = journal.defer(&work(&["make", "x y"], "/a")).unwrap();
    assert_eq!((first.id.to_string().as_str(), first.count, first.runnable), ("d-1", 1, true));
    place.set(START + 9);
    let again = DeferredWork { run: "r-0002".parse().unwrap(), ..work(&["make", "x y"], "/a") };
    let second = journal.defer(&again).unwrap();
    assert_eq!((second.id, second.count, second.work), (first.id, 2, again));
    assert_eq!(second.first_at.as_millis() + 9, second.last_at.as_millis());
    // The same words put differently are other work.
    journal.defer(&work(&["make", "x", "y"], "/a")).unwrap();
    journal.defer(&work(&["make", "x y"], "/b")).unwrap();
    let all = place.journal().deferred().unwrap();
    assert_eq!(all.iter().map(|work| work.id.to_string()).collect::<Vec<_>>(), ["d-1", "d-2", "d-3"]);

    assert!(journal.drop_deferred("d-3".parse().unwrap()).unwrap());
    assert!(!journal.drop_deferred("d-3".parse().unwrap()).unwrap());
    // An id that was dropped is not used again: somebody may have noted it down.
    assert_eq!(journal.defer(&work(&["z"], "/b")).unwrap().id.to_string(), "d-4");
    for bad in ["", "1", "d-", "d--1", "d-x", "d-99999999999", "r-0001", "d-+1"] {
        assert!(bad.parse::<DeferredId>().is_err(), "{bad}");
    }
    journal.begin(header(1), vec![]).unwrap();
}

#[test]
fn work_with_a_secret_cannot_be_run_from_here() {
    let place = Place::knowing(&["hunter2-canary"]);
    let journal = place.journal();
    let plain = journal.defer(&work(&["deploy", "--key=hunter2-canary"], "/a")).unwrap();
    assert!(!plain.runnable);
    assert_eq!(plain.work.argv, ["deploy", &format!("--key={MASK}")]);
    let split = journal.defer(&work(&["deploy", "--password", "sw0rdfish"], "/a")).unwrap();
    assert!(!split.runnable);
    assert_eq!(split.work.argv, ["deploy", "--password", MASK]);
}

#[test]
fn a_task_of_somebody_elses_is_counted_and_forgotten_by_its_name() {
    let place = Place::new();
    let journal = place.journal();
    let task =
        DeferredWork { is_task: true, address: Some("127.0.0.1:5432".to_owned()), ..work(&["t-1"], "/a") };
    let kept = journal.defer(&task).unwrap();
    assert!(!kept.runnable, "only who reported it can go on with it");
    assert_eq!((kept.work.is_task, kept.work.address.as_deref()), (true, Some("127.0.0.1:5432")));
    journal.defer(&work(&["--", "t-1"], "/a")).unwrap();
    assert_eq!(journal.deferred_count().unwrap(), 2);
    assert!(journal.drop_deferred_task("t-1").unwrap());
    assert!(!journal.drop_deferred_task("t-1").unwrap());
    assert_eq!(journal.deferred_count().unwrap(), 1);
}
