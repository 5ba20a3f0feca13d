//! What hooks remember, with many who ask at once.
#![allow(missing_docs, clippy::unwrap_used)]

use backstop_core::{Reason, Redactor, Severity, Timestamp};
use backstop_store::{HookStore, StateFolder, TaskRecord, TaskStatus};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn folder(root: &Path) -> (StateFolder, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(1_700_000_000_000));
    let clock = Arc::clone(&time);
    let redactor = Arc::new(Redactor::new(["C4n4ry-Value"]));
    let now = Arc::new(move || Timestamp::from_millis(clock.load(Ordering::SeqCst)));
    (StateFolder::open(&root.join("state"), now, redactor).unwrap(), time)
}

fn record(status: TaskStatus) -> TaskRecord {
    TaskRecord {
        status,
        reason: Reason::NetworkTransient,
        severity: Severity::Medium,
        attempt: 1,
        of: 3,
        retry_at: None,
        run: Some("r-7f3a".parse().unwrap()),
        why: "C4n4ry-Value".into(),
        context: Some("{}".into()),
    }
}

#[test]
fn failures_count_per_project_task_and_reason_within_the_window() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = HookStore::open(&folder).unwrap();
    let note = |project: &str, task: &str, reason| {
        store.note_failure(project, task, reason, &[], HOUR, &mut |_| record(TaskStatus::Retrying)).unwrap()
    };
    assert_eq!(note("p", "t", Reason::Timeout), 1);
    time.fetch_add(1_800_000, Ordering::SeqCst);
    assert_eq!(note("p", "t", Reason::Timeout), 2);
    assert_eq!(note("p", "t", Reason::RateLimited), 1);
    // What counts together is one row of attempts.
    let together = [Reason::Timeout, Reason::NetworkTransient];
    let noted = store.note_failure("p", "t", Reason::NetworkTransient, &together, HOUR, &mut |_| {
        record(TaskStatus::Retrying)
    });
    assert_eq!(noted.unwrap(), 3);
    assert_eq!(note("p", "t", Reason::RateLimited), 2);
    assert_eq!(note("p", "u", Reason::Timeout), 1);
    assert_eq!(note("q", "t", Reason::Timeout), 1);
    // The first is more than an hour ago now.
    time.fetch_add(1_800_001, Ordering::SeqCst);
    assert_eq!(note("p", "t", Reason::Timeout), 2);
    // A clock that was set back leaves nothing that counts for ever.
    time.fetch_sub(86_400_000, Ordering::SeqCst);
    assert_eq!(note("p", "t", Reason::Timeout), 1);
}

#[test]
fn a_resolved_task_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    let store = HookStore::open(&folder).unwrap();
    assert_eq!(store.resolve_task("p", "t").unwrap(), None);
    let note =
        || store.note_failure("p", "t", Reason::Timeout, &[], HOUR, &mut |_| record(TaskStatus::Retrying));
    note().unwrap();
    store.set_task_run("p", "t", None).unwrap();
    assert_eq!(store.task("p", "t").unwrap().unwrap().record.run, None);
    let before = store.resolve_task("p", "t").unwrap().unwrap();
    assert_eq!(before.record.status, TaskStatus::Retrying);
    assert_eq!(before.record.why.raw(), backstop_core::MASK);
    assert_eq!(store.task("p", "t").unwrap().unwrap().record.status, TaskStatus::Resolved);
    assert_eq!(note().unwrap(), 1);
    assert!(store.task("q", "t").unwrap().is_none());
    assert_eq!(store.tasks("p", 10).unwrap().len(), 1);
}

#[test]
fn the_same_fault_in_a_row_is_counted_and_another_one_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    let store = HookStore::open(&folder).unwrap();
    let counts: Vec<u32> =
        ["a", "a", "a", "b", "a"].iter().map(|fault| store.note_streak("s", fault).unwrap()).collect();
    assert_eq!(counts, [1, 2, 3, 1, 1]);
    store.end_session("s").unwrap();
    assert_eq!(store.note_streak("s", "a").unwrap(), 1);
}

#[test]
fn a_turn_is_held_once() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = HookStore::open(&folder).unwrap();
    assert!(store.take_hold("s", HOUR).unwrap());
    assert!(!store.take_hold("s", HOUR).unwrap());
    assert!(store.take_hold("s", HOUR).unwrap());
    time.fetch_add(3_600_000, Ordering::SeqCst);
    assert!(store.take_hold("s", HOUR).unwrap());
}

#[test]
fn sixteen_threads_lose_no_failure() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    let mut all: Vec<u32> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..16)
            .map(|_| {
                let folder = folder.clone();
                scope.spawn(move || {
                    let store = HookStore::open(&folder).unwrap();
                    let mut stands = |_| record(TaskStatus::Retrying);
                    let mut note =
                        |_| store.note_failure("p", "t", Reason::Timeout, &[], HOUR, &mut stands).unwrap();
                    (0..8).map(&mut note).collect::<Vec<u32>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=128).collect::<Vec<u32>>());
}

#[test]
fn a_damaged_file_is_named_and_can_be_set_aside() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    std::fs::write(temp.path().join("state/hook.db"), "x".repeat(4096)).unwrap();
    assert!(matches!(HookStore::open(&folder), Err(backstop_store::StoreError::Corrupt { .. })));
    assert!(folder.quarantine_hooks().unwrap().is_some());
    HookStore::open(&folder).unwrap();
}

#[test]
fn the_log_is_bounded_and_masked() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    folder.log_hook("a C4n4ry-Value\n\x1b[2Jb").unwrap();
    let file = temp.path().join("state/hook.log");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.lines().count() == 1 && text.contains("\\e[2Jb") && !text.contains("C4n4ry"), "{text}");
    std::fs::write(&file, "x".repeat((1 << 20) + 1)).unwrap();
    folder.log_hook("fresh").unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() < 200);
}
